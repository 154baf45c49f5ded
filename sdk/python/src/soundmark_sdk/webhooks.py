"""Verify the messages that Soundmark sends to webhook endpoints (Standard Webhooks)."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, Protocol, TypeAlias, get_args

from soundmark_sdk import strict_json, timestamps
from soundmark_sdk.clock import Clock, SystemClock
from soundmark_sdk.failures import Unverifiable

WebhookFailure: TypeAlias = Literal[
    "header_missing",
    "header_malformed",
    "too_old",
    "too_new",
    "signature_invalid",
    "malformed",
]

# Standard Webhooks, "Verifying webhook authenticity": how far the clocks of sender and receiver may be apart.
TOLERANCE: Final = timedelta(minutes=5)

_EXPLANATIONS: Final[Mapping[WebhookFailure, str]] = {
    "header_missing": "The header webhook-id, webhook-timestamp or webhook-signature is missing.",
    "header_malformed": "One of these headers is repeated or malformed.",
    "too_old": "The message was sent more than five minutes ago, or the clock here is fast.",
    "too_new": "The message was sent more than five minutes ahead of the clock here.",
    "signature_invalid": "No signature is right: the body was changed, the secret is another one, or it is forged.",
    "malformed": "The signature is right, but the body is not a message of Soundmark.",
}
assert tuple(_EXPLANATIONS) == get_args(WebhookFailure), "each failure has its sentence"

_ID: Final = re.compile(r"[\x21-\x2d\x2f-\x7e]{1,256}")  # A dot would separate it from the time.
_UNIX_S: Final = re.compile(r"[0-9]{1,11}")
_SIGNATURES_CHARS_MAX: Final = 4096  # One has 47 characters, and a message has at most two of ours.
_PREFIX: Final = "whsec_"
# The lengths of a secret that Standard Webhooks allows. Soundmark's have 32 bytes.
_SECRET_BYTES_MIN, _SECRET_BYTES_MAX = 24, 64


class Headers(Protocol):
    """The headers of a request, as web frameworks have them: pairs of name and value, in any case."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Return every name with its value."""
        ...


class WebhookRejected(Exception):
    """The first fault in a message. Respond with status 400, and do nothing else.

    `explanation` is an English sentence of this package. Nothing here holds text from the message, or the secret.
    """

    def __init__(self, failure: WebhookFailure) -> None:
        super().__init__(f"{failure}: {_EXPLANATIONS[failure]}")
        self.failure: Final[WebhookFailure] = failure
        self.explanation: Final = _EXPLANATIONS[failure]


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """A verified message.

    `id` is the event's, the same in every retry and replay, so a consumer that stores it does nothing twice.
    `occurred_at` is when the event happened, and `sent_at` when this attempt to deliver it was made.
    """

    id: str
    type: str
    occurred_at: datetime
    sent_at: datetime
    data: Mapping[str, Any]


def verify(headers: Headers, body: bytes, secret: str | Sequence[str], *, clock: Clock | None = None) -> WebhookMessage:
    """Return the message that a request to a webhook endpoint carries, if Soundmark sent it within five minutes.

    `headers` are the request's, in any case. `body` is the request's body, byte for byte as it was received. `secret`
    is the endpoint's (`whsec_…`), or several for several endpoints with one address. While a secret is rotated,
    messages carry two signatures, and either secret is enough.

    Raises: WebhookRejected; ValueError for a secret that is none, without showing it.
    Source: Standard Webhooks 1.1.0, "Verifying webhook authenticity"; wire contract, section 9.
    """
    keys = [_read_secret(one) for one in ([secret] if isinstance(secret, str) else secret)]
    if not keys:
        raise ValueError("Give one secret or more.")
    message_id, unix_s, signatures = _read_headers(headers)
    sent_at = _judge_time(unix_s, (SystemClock() if clock is None else clock).now())
    content = b".".join((message_id.encode("ascii"), unix_s.encode("ascii"), bytes(memoryview(body))))
    expected = [hmac.digest(key, content, hashlib.sha256) for key in keys]
    if not _has_match(signatures, expected):
        raise WebhookRejected("signature_invalid")
    return _read_message(message_id, sent_at, bytes(body))


def _read_secret(secret: str) -> bytes:
    encoded = secret.removeprefix(_PREFIX)
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_PREFIX) or not _SECRET_BYTES_MIN <= len(key) <= _SECRET_BYTES_MAX:
        raise ValueError("A webhook secret is whsec_ and 24 to 64 bytes in base64.")
    return key


def _read_headers(headers: Headers) -> tuple[str, str, str]:
    """Return the id, the time and the signatures of a message as its headers spell them."""
    wanted: dict[str, list[str]] = {"webhook-id": [], "webhook-timestamp": [], "webhook-signature": []}
    for name, value in headers.items():
        if name.lower() in wanted:
            wanted[name.lower()].append(value)
    if not all(wanted.values()):
        raise WebhookRejected("header_missing")
    if any(len(values) > 1 for values in wanted.values()):
        raise WebhookRejected("header_malformed")
    message_id, unix_s, signatures = (values[0].strip(" \t") for values in wanted.values())
    is_well_formed = _ID.fullmatch(message_id) and _UNIX_S.fullmatch(unix_s)
    if not is_well_formed or len(signatures) > _SIGNATURES_CHARS_MAX:
        raise WebhookRejected("header_malformed")
    return message_id, unix_s, signatures


def _judge_time(unix_s: str, now: datetime) -> datetime:
    age_s = now.timestamp() - int(unix_s)
    if age_s > TOLERANCE.total_seconds():
        raise WebhookRejected("too_old")
    if -age_s > TOLERANCE.total_seconds():
        raise WebhookRejected("too_new")
    return datetime.fromtimestamp(int(unix_s), UTC)


def _has_match(signatures: str, expected: Sequence[bytes]) -> bool:
    """Return whether one of the signatures is one of those expected; it takes as long whichever it is."""
    is_found = False
    for signature in signatures.split(" "):
        version, _, encoded = signature.partition(",")
        if version != "v1":  # Later versions may come beside ours.
            continue
        for digest in expected:
            is_found |= hmac.compare_digest(base64.b64encode(digest), encoded.encode("utf-8", "replace"))
    return is_found


def _read_message(message_id: str, sent_at: datetime, body: bytes) -> WebhookMessage:
    try:
        message = strict_json.parse(body)
        if not isinstance(message, dict):
            raise WebhookRejected("malformed")
        kind, data = message.get("type"), message.get("data")
        occurred_at = timestamps.parse(message.get("timestamp"))
    except Unverifiable:
        raise WebhookRejected("malformed") from None
    if not isinstance(kind, str) or not isinstance(data, dict):
        raise WebhookRejected("malformed")
    return WebhookMessage(message_id, kind, occurred_at, sent_at, data)
