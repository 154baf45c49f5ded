"""The card stand-in's objects have the members that the official SDK declares, at basil.

The SDK declares those of a later API version as well; the ones that basil lacks are listed here.
"""

import sys
import types
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import pytest
import stripe
from support.outside.card_sdk import create_session, make_client
from support.outside.running_sandbox import RunningSandbox

# What the SDK declares and API version 2025-03-31.basil lacks: the difference to version 12.0.0 of the SDK, whose
# default it was.
LATER: Final[Mapping[str, set[str]]] = {
    "checkout.session": {
        "allowed_payment_method_types", "branding_settings", "customer_account", "excluded_payment_method_types",
        "integration_identifier", "managed_payments", "name_collection", "origin_context", "wallet_options",
    },
    "subscription": {
        "billing_mode", "billing_schedules", "billing_thresholds", "customer_account", "managed_payments",
        "presentment_details", "status_details",
    },
    "subscription_item": {"billed_until", "billing_thresholds", "current_trial"},
    "invoice": {"amount_paid_off_stripe", "customer_account", "status_details"},
    "line_item": {"quantity_decimal", "subtotal"},
    "event": {"context"},
    "billing_portal.session": {"after_expiration", "customer_account"},
    "customer": {"business_name", "customer_account", "individual_name"},
    "product": {"tax_details"},
}  # fmt: skip
# What appears only where it is expanded, was deleted, or belongs to a platform's account.
SOMETIMES: Final = {
    "account", "amount_discount", "breakdown", "cash_balance", "confirmation_secret", "currency_options", "deleted",
    "invoice_credit_balance", "line_items", "payments", "sources", "subscriptions", "tax", "tax_ids", "tiers",
}  # fmt: skip
CLASSES: Final[Mapping[str, type]] = {
    "checkout.session": stripe.checkout.Session,
    "subscription": stripe.Subscription,
    "subscription_item": stripe.SubscriptionItem,
    "invoice": stripe.Invoice,
    "line_item": stripe.InvoiceLineItem,
    "price": stripe.Price,
    "plan": stripe.Plan,
    "product": stripe.Product,
    "event": stripe.Event,
    "billing_portal.session": stripe.billing_portal.Session,
    "customer": stripe.Customer,
}
FIELDS_OF_OBJECT: Final = {"OBJECT_NAME"}


@pytest.fixture
async def documents(sandbox: RunningSandbox) -> dict[str, dict[str, Any]]:
    """One object of each kind, after a purchase."""
    session = await create_session(sandbox)
    await sandbox.client.post(session.url, data={"act": "pay"})
    headers = {"authorization": f"Bearer {sandbox.secret('CARD_SECRET_KEY')}"}

    async def read(path: str) -> dict[str, Any]:
        answer: dict[str, Any] = (await sandbox.client.get(f"/card/v1{path}", headers=headers)).json()
        return answer

    bought = await read(f"/checkout/sessions/{session.id}")
    subscription = await read(f"/subscriptions/{bought['subscription']}")
    (item,) = subscription["items"]["data"]
    invoice = await read(f"/invoices/{subscription['latest_invoice']}")
    price = await read(f"/prices/{item['price']['id']}?expand[0]=product")
    portal = await sandbox.client.post(
        "/card/v1/billing_portal/sessions", data={"customer": bought["customer"]}, headers=headers
    )
    return {
        "checkout.session": bought,
        "subscription": subscription,
        "subscription_item": item,
        "invoice": invoice,
        "line_item": invoice["lines"]["data"][0],
        "price": {**price, "product": price["product"]["id"]},
        "plan": item["plan"],
        "product": price["product"],
        "event": (await read("/events"))["data"][0],
        "billing_portal.session": portal.json(),
        "customer": await read(f"/customers/{bought['customer']}"),
    }


async def test_an_object_has_exactly_the_members_of_its_version(
    documents: dict[str, dict[str, Any]], subtests: pytest.Subtests
) -> None:
    for kind in CLASSES:
        with subtests.test(kind=kind):
            declared = set(CLASSES[kind].__annotations__) - FIELDS_OF_OBJECT
            document = documents[kind]
            assert document["object"] == kind
            assert set(document) == declared - LATER.get(kind, set()) - SOMETIMES


async def test_a_member_has_a_value_of_its_declared_type(
    documents: dict[str, dict[str, Any]], subtests: pytest.Subtests
) -> None:
    for kind in CLASSES:
        with subtests.test(kind=kind):
            faults = list(_find_faults(documents[kind], CLASSES[kind], kind))
            assert faults == []


async def test_an_object_of_the_sdk_is_made_of_each(sandbox: RunningSandbox) -> None:
    session = await create_session(sandbox)
    assert isinstance(session, stripe.checkout.Session)
    assert make_client(sandbox).v1 is not None


class _Names(dict[str, Any]):
    """The names in the SDK's annotations, whose modules import them for type checkers only."""

    def __missing__(self, name: str) -> Any:
        return getattr(stripe, name, stripe.StripeObject)


def _find_faults(value: Any, hint: Any, place: str) -> Any:
    """Yield each place where a value is not of its declared type; of an SDK class, its members are checked."""
    origin = get_origin(hint)
    if origin in {Union, types.UnionType}:
        fitting = [option for option in get_args(hint) if _fits(value, option)]
        found = [list(_find_faults(value, option, place)) for option in fitting]
        if not found:
            yield f"{place}: {value!r} is not {hint}"
        elif all(found):
            yield from found[0]
        return
    if isinstance(hint, type) and issubclass(hint, stripe.StripeObject) and isinstance(value, dict):
        yield from _find_member_faults(value, hint, place)
    elif not _fits(value, hint):
        yield f"{place}: {value!r} is not {hint}"
    elif origin is list:
        for number, item in enumerate(value):
            yield from _find_faults(item, get_args(hint)[0], f"{place}[{number}]")


def _find_member_faults(value: dict[str, Any], declared: type, place: str) -> Any:
    if declared is stripe.StripeObject or not declared.__annotations__:
        return
    hints = get_type_hints(declared, vars(sys.modules[declared.__module__]), _Names())
    later = LATER.get(str(value.get("object")), set())
    for name in declared.__annotations__.keys() - FIELDS_OF_OBJECT - later:
        if name in value:
            yield from _find_faults(value[name], hints[name], f"{place}.{name}")
        elif type(None) not in get_args(hints[name]) and name not in SOMETIMES:
            yield f"{place}: {name} is missing"


def _fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in {Union, types.UnionType}:
        return any(_fits(value, option) for option in get_args(hint))
    kind = origin or hint
    if not isinstance(kind, type):
        return kind is Any
    if issubclass(kind, stripe.StripeObject):
        return isinstance(value, dict)
    if issubclass(kind, Decimal):
        return isinstance(value, str)  # As it travels.
    return isinstance(value, kind) and (kind is not int or not isinstance(value, bool))
