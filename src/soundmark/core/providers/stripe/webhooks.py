"""The card provider's webhooks: their signature, and the envelope of an event.

The SDK verifies signatures too, but by the machine's clock, and it accepts a time in the future.

Source: the provider's documentation of webhook signatures; contract, section 7.
"""

import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from soundmark.core.domain.billing.card import CardInvoice, CardSession, CardSubscription
from soundmark.core.domain.billing.card_event import INVOICE_EVENTS, SESSION_EVENTS, SUBSCRIPTION_EVENTS, CardEvent
from soundmark.core.providers.stripe.shapes import ShapeInvalid, read_invoice, read_session, read_subscription
from soundmark.kit.crypto.secret import Secret, any_equal

SIGNATURE_HEADER: Final = "Stripe-Signature"
TOLERANCE_S: Final = 300  # In either direction.
_HEADER_CHARS_MAX: Final = 4096
_SIGNATURES_MAX: Final = 8  # The provider signs with two secrets while one is rotated.
_TIME: Final = re.compile(r"[0-9]{1,12}")
_SIGNATURE: Final = re.compile(r"[0-9a-f]{64}")

_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], CardSession | CardSubscription | CardInvoice]]] = {
    **dict.fromkeys(SESSION_EVENTS, read_session),
    **dict.fromkeys(SUBSCRIPTION_EVENTS, read_subscription),
    **dict.fromkeys(INVOICE_EVENTS, read_invoice),
}


class _Data(msgspec.Struct):
    object: dict[str, Any]


class _Envelope(msgspec.Struct):
    """The members of an event that are read. It has others."""

    object: Literal["event"]
    id: Annotated[str, msgspec.Meta(pattern=r"^evt_[A-Za-z0-9_-]{1,250}\Z")]
    type: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_.]{1,100}\Z")]
    created: Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799)]  # Until the year 9999.
    data: _Data


def is_signed(body: bytes, header: str, secrets: Sequence[Secret], *, now_s: float) -> bool:
    """Return whether one of the secrets signed exactly these bytes within the last or next five minutes."""
    if len(header) > _HEADER_CHARS_MAX:
        return False
    pairs = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    signatures = [value for name, _, value in pairs if name == "v1" and _SIGNATURE.fullmatch(value)]
    if len(times) != 1 or _TIME.fullmatch(times[0]) is None or len(signatures) > _SIGNATURES_MAX:
        return False
    if abs(now_s - int(times[0])) > TOLERANCE_S:
        return False
    signed = times[0].encode() + b"." + body
    expected = (hmac.digest(secret.reveal().encode(), signed, "sha256") for secret in secrets)
    return any_equal(expected, [bytes.fromhex(signature) for signature in signatures])


def read_event(value: Any) -> CardEvent | None:
    """Read an event from its JSON; return None for anything else. An event of another type has no subject."""
    try:
        envelope = msgspec.convert(value, type=_Envelope)
    except (msgspec.ValidationError, RecursionError):
        return None
    read = _READERS.get(envelope.type)
    subject = None
    if read is not None:
        try:
            subject = read(envelope.data.object)
        except ShapeInvalid:
            subject = None
    return CardEvent(envelope.id, envelope.type, datetime.fromtimestamp(envelope.created, UTC), subject)
