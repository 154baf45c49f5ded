"""The client of the local-currency provider, API version 2.

Source: the provider's documentation of `generate_payment` and `verify_payment`.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import structlog

from soundmark.core.domain.billing.checkout import Checkout
from soundmark.core.live.platform_settings import PlatformSettings
from soundmark.core.problems import PaymentNotVerified, PaymentProviderUnavailable
from soundmark.core.providers.pages import is_page_url
from soundmark.kit.http.outbound.client import OutboundClient, OutboundRequest, OutboundResponse, RequestLost
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json
from soundmark.settings.registry import LocalPaymentSettings

PAYMENT_ID: Final = re.compile(r"[A-Za-z0-9_-]{6,100}", re.ASCII)  # What the provider's own plugins accept.
CALL_TIMEOUT_S: Final = 10.0
_BYTES_MAX: Final = 256 * 1024
_JSON: Final = "application/json"
_OK: Final = range(200, 300)
_NOT_FOUND: Final = 404
_log: Final = structlog.get_logger()

S = TypeVar("S", bound=msgspec.Struct)


class LocalPaymentMissing(Exception):
    """The local provider has no such payment."""


@dataclass(frozen=True, slots=True)
class LocalPage:
    """A payment that was made, and the page on which it is paid."""

    payment_id: str = field(repr=False)
    link: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LocalPayment:
    """A payment as the provider has it; `status` is the provider's own word.

    `is_success` is what the answer says of itself. `amount_minor` is None if it is not an integer. Without success,
    `status` is empty if the provider did not say.
    """

    is_success: bool
    status: str
    amount_minor: int | None
    tracking_id: str | None


class _Generated(msgspec.Struct):
    payment_id: str
    link: str
    success: bool = True
    developer_tracking_id: str | None = None


class _Page(msgspec.Struct):
    result: _Generated


class _Outcome(msgspec.Struct):
    success: bool


class _Paid(msgspec.Struct):
    status: str
    amount: Any
    developer_tracking_id: Any = None


class _Payment(msgspec.Struct):
    result: _Paid


class LocalProvider:
    """Calls the local provider. The keys are read anew for each call; no request is sent twice.

    Every method raises PaymentProviderUnavailable if the provider is not configured, refuses, cannot be reached within
    ten seconds, or does not answer as documented. No error and no log line repeats a key, a payment or a URL.
    """

    def __init__(
        self,
        api_url: str,
        settings: PlatformSettings,
        *,
        timeout_s: float = CALL_TIMEOUT_S,
        extra_ca_file: Path | None = None,
    ) -> None:
        self._api_url: Final = api_url
        self._settings: Final = settings
        self._timeout_s: Final = timeout_s
        self._client: Final = OutboundClient(bytes_max=_BYTES_MAX, extra_ca_file=extra_ca_file)

    async def is_configured(self) -> bool:
        """Return whether both keys are set."""
        settings = await self._settings.read(LocalPaymentSettings)
        return settings.local_public_key is not None and settings.local_secret_key is not None

    async def generate(self, checkout: Checkout, *, success_url: str, fail_url: str, webhook_url: str) -> LocalPage:
        """Make a payment for the checkout, and a page on which it is paid. The provider makes one at each call."""
        assert checkout.amount_minor is not None, "a checkout of the local provider has an amount"
        body = {
            "amount": checkout.amount_minor,
            "success_link": success_url,
            "fail_link": fail_url,
            "webhook": webhook_url,
            "developer_tracking_id": checkout.id,
        }
        response = await self._send("POST", "/api/v2/generate_payment", msgspec.json.encode(body))
        if response.status not in _OK or response.media_type != _JSON:
            raise _fail("refused", response.status)
        made = _read(_Page, _parse(response)).result
        is_ours = made.success and made.developer_tracking_id in {None, checkout.id}
        if not is_ours or PAYMENT_ID.fullmatch(made.payment_id) is None or not is_page_url(made.link):
            raise _fail("malformed")
        return LocalPage(made.payment_id, made.link)

    async def verify(self, payment_id: str) -> LocalPayment:
        """Return a payment. What the answer holds of the payer is not read.

        Raises: LocalPaymentMissing; PaymentNotVerified for an answer that is not JSON.
        """
        assert PAYMENT_ID.fullmatch(payment_id) is not None, "only ids that the provider gave are verified"
        response = await self._send("GET", f"/api/v2/verify_payment/{payment_id}")
        if response.status == _NOT_FOUND:
            raise LocalPaymentMissing
        if response.status not in _OK:
            raise _fail("refused", response.status)
        if response.media_type != _JSON:
            _fail("media_type", response.status)
            raise PaymentNotVerified
        value = _parse(response)
        if not _read(_Outcome, value).success:
            result = value.get("result")
            status = result.get("status") if isinstance(result, dict) else None
            return LocalPayment(
                is_success=False, status=status if isinstance(status, str) else "", amount_minor=None, tracking_id=None
            )
        paid = _read(_Payment, value).result
        return LocalPayment(
            is_success=True,
            status=paid.status,
            amount_minor=paid.amount if type(paid.amount) is int else None,
            tracking_id=paid.developer_tracking_id if isinstance(paid.developer_tracking_id, str) else None,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _send(self, method: str, path: str, body: bytes | None = None) -> OutboundResponse:
        settings = await self._settings.read(LocalPaymentSettings)
        if settings.local_public_key is None or settings.local_secret_key is None:
            raise _fail("not_configured")
        credential = f"{settings.local_public_key.reveal()}:{settings.local_secret_key.reveal()}"
        headers = {"authorization": f"Bearer {credential}"} | ({"content-type": _JSON} if body is not None else {})
        request = OutboundRequest(method, self._api_url + path, headers, body)
        try:
            return await self._client.send(request, timeout_s=self._timeout_s)
        except RequestLost as lost:
            raise _fail(lost.reason) from None


def _parse(response: OutboundResponse) -> dict[str, Any]:
    try:
        value = parse_json(response.body)
    except MalformedJson:
        raise _fail("malformed", response.status) from None
    if not isinstance(value, dict):
        raise _fail("malformed", response.status)
    return value


def _read(shape: type[S], value: dict[str, Any]) -> S:
    try:
        return msgspec.convert(value, type=shape)
    except msgspec.ValidationError:
        raise _fail("malformed") from None


def _fail(reason: str, status: int | None = None) -> PaymentProviderUnavailable:
    """Log why the provider failed, in our own words, and return the problem to raise."""
    _log.warning("local_call_failed", reason=reason, status=status)
    return PaymentProviderUnavailable()
