"""Parsing an event from its bytes to the values that are judged and stored."""

import hashlib
import re
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import ValidationError

from soundmark.audience.domain.packing import RECEIVER_NUMBERS
from soundmark.kit.http.requests.bodies import find_crowds
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json
from soundmark.kit.http.responses.problem_documents import body_errors, pointer_to
from soundmark.kit.http.responses.problems import FieldError, MalformedBody, ValidationFailed
from soundmark.kit.text.timestamps import parse_timestamp
from soundmark.wire.audience_event import COUNTRIES, AudienceEvent

_INTEGRATION_ID: Final = re.compile(r"int_[A-Za-z0-9_-]{8,}", re.ASCII)
# The texts of an event, separated by spaces: as exact as `AudienceEvent`, with one match instead of fifteen. The key's
# id is left out, because it must equal a trusted one anyway.
_TIMESTAMP: Final = r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:[0-5]\d)"
_EXACT: Final = re.compile(
    r"evt_[A-Za-z0-9_-]{22} int_[A-Za-z0-9_-]{8,} xr_[A-Za-z0-9_-]{16,} " + _TIMESTAMP + " mt_[A-Za-z0-9_-]{43} "
    r"(?:prf_[A-Za-z0-9_-]{16,})? xr_[A-Za-z0-9_-]{16,} int_[A-Za-z0-9_-]{8,} (?:cmp_[A-Za-z0-9_-]{16,})? "
    + _TIMESTAMP + " " + _TIMESTAMP + r" [A-Za-z0-9_-]{43,}",
    re.ASCII,
)  # fmt: skip
_KEY_ID_CHARS_MAX: Final = 160
_DIGEST_CHARS: Final = 32  # 128 bits, as hexadecimal digits.
# Quotation marks of an event with neither country, proof id nor campaign: two for each name and each text.
_QUOTES_MIN: Final = 2 * (7 + 6 + 7 + 6)


class Proof(NamedTuple):
    """The proof in an event, as Core signed it."""

    proof_id: str | None
    xr_id: str
    integration_id: str
    campaign_id: str | None
    issued_at_text: str
    expires_at_text: str
    issued_at: datetime
    expires_at: datetime
    key_id: str
    signature: str

    def canonical(self, key_id: bytes) -> bytes:
        """Return the RFC 8785 bytes that the signature covers; `key_id` is the canonical form of the key's id.

        They are joined from canonical parts, in the order of their names: no other text in a proof has a character
        that JSON would escape. Tests compare the result with the library's.
        """
        return b"".join(
            (
                b'{"campaign_id":', b"null" if self.campaign_id is None else b'"%b"' % self.campaign_id.encode(),
                b',"expires_at":"', self.expires_at_text.encode(),
                b'","integration_id":"', self.integration_id.encode(),
                b'","issued_at":"', self.issued_at_text.encode(),
                b'","key_id":', key_id,
                b"" if self.proof_id is None else b',"proof_id":"%b"' % self.proof_id.encode(),
                b',"xr_id":"', self.xr_id.encode(), b'"}',
            )
        )  # fmt: skip


class Event(NamedTuple):
    """A well-formed event, which is not trusted yet."""

    event_id: str
    integration_id: str
    xr_id: str
    occurred_at: datetime
    receiver: int
    token: str
    country: str | None
    proof: Proof


class _ProofMembers(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    xr_id: str
    integration_id: str
    campaign_id: str | None
    issued_at: str
    expires_at: str
    key_id: str
    signature: str
    proof_id: str | msgspec.UnsetType = msgspec.UNSET


class _Members(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    event_id: str
    integration_id: str
    xr_id: str
    occurred_at: str
    receiver_class: str
    measurement_token: str
    proof: _ProofMembers
    country: str | msgspec.UnsetType | None = msgspec.UNSET


class UnreadEvent(NamedTuple):
    """A body of well-formed JSON, which is not read further until its signature is verified.

    `integration_id` is the integration that it claims to be from; None if it is missing or malformed. The parsed body
    is `members`, or `value` for an unusual body. `query_faults` are the faults of the request's query string.
    """

    body: bytes
    integration_id: str | None
    members: _Members | None = None
    value: Any = None
    query_faults: tuple[FieldError, ...] = ()


_decode: Final = msgspec.json.Decoder(_Members).decode


def parse_body(body: bytes) -> UnreadEvent:
    """Parse `body` and find the integration that it claims to be from; judge nothing else.

    Raises: MalformedBody unless it is I-JSON.
    Source: contract, section 6.
    """
    members = _parse_usual(body)
    if members is not None:
        return UnreadEvent(body, _parse_id(members.integration_id), members)
    value = _parse_any(body)
    return UnreadEvent(body, _parse_id(value.get("integration_id") if isinstance(value, dict) else None), value=value)


def read_event(unread: UnreadEvent) -> Event | ValidationFailed:
    """Return the event in a parsed body, or why the body is not an event.

    Source: contract, section 6, Event.
    """
    if unread.query_faults:
        return ValidationFailed(errors=unread.query_faults)
    if unread.members is not None:
        event = _read_usual(unread.members)
        if event is not None:
            return event
    return _read_any(_parse_any(unread.body) if unread.members is not None else unread.value)


def event_digest(event_id: str) -> str:
    """Return the digest that is stored of an event id, as hexadecimal digits."""
    return hashlib.sha256(event_id.encode()).hexdigest()[:_DIGEST_CHARS]


def body_digest(body: bytes) -> str:
    """Return the digest that is stored of an event's body, as hexadecimal digits."""
    return hashlib.sha256(body).hexdigest()[:_DIGEST_CHARS]


def _parse_usual(body: bytes) -> _Members | None:
    """Return the members of a body that has exactly those of an event, as texts; None if this quick test cannot tell.

    An ASCII body without a backslash has quotation marks only at both ends of every name and text. If there are as
    many as the members need, no name occurs twice.
    """
    if b"\\" in body or not body.isascii():
        return None
    try:
        members = _decode(body)
    except msgspec.MsgspecError:
        return None
    proof = members.proof
    quotes_count = _QUOTES_MIN
    if members.country is not msgspec.UNSET:
        quotes_count += 2 if members.country is None else 4
    quotes_count += (4 if proof.proof_id is not msgspec.UNSET else 0) + (2 if proof.campaign_id is not None else 0)
    return members if body.count(b'"') == quotes_count else None


def _read_usual(members: _Members) -> Event | None:
    """Return the event if one match shows that it is well-formed; None if this quick test cannot tell."""
    proof, country = members.proof, members.country
    proof_id = "" if proof.proof_id is msgspec.UNSET else proof.proof_id
    campaign_id = proof.campaign_id or ""
    if country is msgspec.UNSET:
        country = None
    elif country is not None and country not in COUNTRIES:
        return None
    receiver = RECEIVER_NUMBERS.get(members.receiver_class)
    texts = (
        f"{members.event_id} {members.integration_id} {members.xr_id} {members.occurred_at} "
        f"{members.measurement_token} {proof_id} "
        f"{proof.xr_id} {proof.integration_id} {campaign_id} {proof.issued_at} {proof.expires_at} {proof.signature}"
    )
    if (
        receiver is None
        or _EXACT.fullmatch(texts) is None
        or not 1 <= len(proof.key_id) <= _KEY_ID_CHARS_MAX
        or not proof.key_id.isprintable()
        # `texts` cannot tell an empty member from an absent one.
        or (proof_id == "" and proof.proof_id is not msgspec.UNSET)
        or (campaign_id == "" and proof.campaign_id is not None)
    ):
        return None
    try:
        occurred_at = _moment(members.occurred_at)
        issued_at, expires_at = _moment(proof.issued_at), _moment(proof.expires_at)
    except ValueError:
        return None
    return Event(
        members.event_id, members.integration_id, members.xr_id, occurred_at, receiver, members.measurement_token,
        country,
        Proof(
            proof_id or None, proof.xr_id, proof.integration_id, proof.campaign_id,
            proof.issued_at, proof.expires_at, issued_at, expires_at, proof.key_id, proof.signature,
        ),
    )  # fmt: skip


_ZULU_MS_CHARS: Final = len("2026-11-20T10:00:00.000Z")


def _moment(text: str) -> datetime:
    """Return what `parse_timestamp` returns, but faster for the shape that we write ourselves."""
    if len(text) == _ZULU_MS_CHARS and text[-1] == "Z" and text[-5] == ".":
        return datetime.fromisoformat(text)
    return parse_timestamp(text)


def _parse_id(text: Any) -> str | None:
    """Return `text` if it may be the id of an integration, or else None."""
    return text if isinstance(text, str) and _INTEGRATION_ID.fullmatch(text) is not None else None


def _parse_any(body: bytes) -> Any:
    try:
        return parse_json(body)
    except MalformedJson as error:
        raise MalformedBody(f"The body is not well-formed JSON: {error}.") from None


def _read_any(value: Any) -> Event | ValidationFailed:
    """Return the event in any parsed body, or why the body is not an event."""
    crowds = find_crowds(value)
    if crowds:
        return ValidationFailed(errors=tuple(FieldError("body", pointer_to(one.place), one.message) for one in crowds))
    try:
        event = AudienceEvent.model_validate(value)
    except ValidationError as error:
        return ValidationFailed(errors=body_errors(error))
    proof = event.proof
    return Event(
        event_id=event.event_id,
        integration_id=event.integration_id,
        xr_id=event.xr_id,
        occurred_at=event.occurred_at,
        receiver=RECEIVER_NUMBERS[event.receiver_class],
        token=event.measurement_token,
        country=event.country,
        proof=Proof(
            proof_id=proof.proof_id,
            xr_id=proof.xr_id,
            integration_id=proof.integration_id,
            campaign_id=proof.campaign_id,
            # As received, because the signature covers the texts.
            issued_at_text=value["proof"]["issued_at"],
            expires_at_text=value["proof"]["expires_at"],
            issued_at=proof.issued_at.astimezone(UTC),
            expires_at=proof.expires_at.astimezone(UTC),
            key_id=proof.key_id,
            signature=proof.signature,
        ),
    )
