"""`POST /v1/checkout/sessions`: the check of its parameters, and the session that they make."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from soundmark.sandbox.card.book import CardBook
from soundmark.sandbox.card.errors import CardError, invalid_param, missing_param, no_such
from soundmark.sandbox.card.records import CheckoutSession, Price

# The parameters that are understood; the provider has more.
_KNOWN: Final = (
    "mode line_items client_reference_id metadata subscription_data success_url cancel_url customer customer_email "
    "expires_at expand ui_mode locale payment_method_types allow_promotion_codes billing_address_collection"
)
_LIFE_MIN: Final = timedelta(minutes=30)
_LIFE_MAX: Final = timedelta(hours=24)
_METADATA_KEYS_MAX: Final = 50
_METADATA_KEY_CHARS_MAX: Final = 40
_METADATA_VALUE_CHARS_MAX: Final = 500
_REFERENCE_CHARS_MAX: Final = 200
_URL_CHARS_MAX: Final = 5000
_TRIAL_DAYS_MAX: Final = 730
_QUANTITY_MAX: Final = 999_999
_CLOCKS_DIFFER: Final = timedelta(seconds=60)


def create_session(book: CardBook, params: Mapping[str, Any], pages_url: str) -> CheckoutSession:
    """Make an open session, whose page is below `pages_url`.

    Raises: CardError.
    """
    require_known(params, _KNOWN.split())
    if params.get("mode") != "subscription":
        raise invalid_param("mode", "The sandbox sells subscriptions only: mode must be subscription.")
    if params.get("ui_mode", "hosted") != "hosted":
        raise invalid_param("ui_mode", "Invalid ui_mode: must be one of custom, embedded, or hosted")
    price, quantity = _read_item(book, params.get("line_items"))
    customer_id, email = params.get("customer"), params.get("customer_email")
    if customer_id is not None and email is not None:
        raise invalid_param("customer_email", "You may only specify one of these parameters: customer, customer_email.")
    if customer_id is not None and book.customers.find(customer_id) is None:
        raise no_such("customer", customer_id, param="customer")
    subscription_data = params.get("subscription_data", {})
    now = book.clock.now().replace(microsecond=0)
    session_id = book.mint("cs_test_", 58)
    session = CheckoutSession(
        id=session_id,
        price=price,
        quantity=quantity,
        success_url=_read_url(params, "success_url", is_required=True) or "",
        cancel_url=_read_url(params, "cancel_url"),
        client_reference_id=_read_reference(params),
        metadata=read_metadata(params, "metadata"),
        subscription_metadata=read_metadata(subscription_data, "metadata", "subscription_data[metadata]"),
        customer_id=customer_id,
        customer_email=email,
        trial_days=_read_trial_days(subscription_data),
        created_at=now,
        expires_at=_read_expiry(params, now),
        url=f"{pages_url}/pay/{session_id}#fidsandbox",  # Real pages have a fragment.
    )
    return book.sessions.add(session.id, session)


def require_known(params: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse a parameter that the operation does not have.

    Raises: CardError.
    """
    for name in params:
        if name not in known:
            raise CardError(400, f"Received unknown parameter: {name}", code="parameter_unknown", param=name)


def read_metadata(params: Any, name: str, param: str | None = None) -> dict[str, str]:
    """Return metadata within the provider's limits.

    Raises: CardError.
    """
    metadata = params.get(name, {}) if isinstance(params, Mapping) else None
    param = param or name
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise invalid_param(param, "Invalid object")
    if len(metadata) > _METADATA_KEYS_MAX:
        raise invalid_param(param, f"Metadata can have at most {_METADATA_KEYS_MAX} keys")
    for key, value in metadata.items():
        if len(key) > _METADATA_KEY_CHARS_MAX or len(value) > _METADATA_VALUE_CHARS_MAX:
            raise invalid_param(f"{param}[{key}]", "Metadata keys have up to 40 characters, values up to 500")
    return metadata


def _read_item(book: CardBook, items: Any) -> tuple[Price, int]:
    if not items:
        raise missing_param("line_items")
    if not isinstance(items, list) or len(items) != 1 or not isinstance(items[0], dict):
        raise invalid_param("line_items", "The sandbox sells one price at a time.")
    price_id = items[0].get("price")
    if not isinstance(price_id, str):
        raise missing_param("line_items[0][price]")
    price = book.prices.find(price_id)
    if price is None:
        raise no_such("price", price_id, param="line_items[0][price]")
    if not price.is_active:
        raise invalid_param(
            "line_items[0][price]", "The price specified is inactive. This field only accepts active prices."
        )
    quantity = items[0].get("quantity", "1")
    if not isinstance(quantity, str) or not quantity.isdecimal() or not 0 < int(quantity) <= _QUANTITY_MAX:
        raise invalid_param("line_items[0][quantity]", f"Invalid integer: {quantity}")
    return price, int(quantity)


def _read_url(params: Mapping[str, Any], name: str, *, is_required: bool = False) -> str | None:
    url = params.get(name)
    if url is None and is_required:
        raise missing_param(name)
    if url is not None and (len(url) > _URL_CHARS_MAX or not url.startswith(("https://", "http://"))):
        raise CardError(400, "Not a valid URL", code="url_invalid", param=name)
    return url


def _read_reference(params: Mapping[str, Any]) -> str | None:
    reference = params.get("client_reference_id")
    if reference is not None and not 0 < len(reference) <= _REFERENCE_CHARS_MAX:
        raise invalid_param("client_reference_id", "Invalid string: must be at most 200 characters")
    return reference


def _read_trial_days(subscription_data: Any) -> int:
    days = subscription_data.get("trial_period_days", "0") if isinstance(subscription_data, dict) else "0"
    if not isinstance(days, str) or not days.isdecimal() or int(days) > _TRIAL_DAYS_MAX:
        raise invalid_param("subscription_data[trial_period_days]", f"Invalid integer: {days}")
    return int(days)


def _read_expiry(params: Mapping[str, Any], now: datetime) -> datetime:
    text = params.get("expires_at")
    if text is None:
        return now + _LIFE_MAX
    if not text.isdecimal() or len(text) > 10:  # noqa: PLR2004 - seconds since 1970
        raise invalid_param("expires_at", f"Invalid timestamp: {text}")
    expires_at = datetime.fromtimestamp(int(text), UTC)
    life = expires_at - now
    if not _LIFE_MIN - _CLOCKS_DIFFER <= life <= _LIFE_MAX + _CLOCKS_DIFFER:
        raise invalid_param(
            "expires_at",
            "The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation.",
        )
    return expires_at
