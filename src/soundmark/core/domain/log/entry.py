"""The entries of the transparency log: closed objects that commit to what happened, and reveal nothing of it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from soundmark.core.domain.codes.signed_facts import SignedFacts, read_facts
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.text import base64url

KeyEvent = Literal["key.published", "key.activated", "key.superseded", "key.retired"]

DIGEST_BYTES: Final = 32
DIGEST_CHARS: Final = 43
ENTRY_BYTES_MAX: Final = 512  # The longest kind has less than 250.
_TAG: Final = "soundmark/log/v1/"
# The members of each kind that are digests, beside `v` and `kind`.
_DIGESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "code.issued": ("code", "answer"),
    "code.revoked": ("code",),
    "key.published": ("key",),
    "key.activated": ("key",),
    "key.superseded": ("key",),
    "key.retired": ("key",),
    "audit.head": ("head",),
    "document.sealed": ("document",),
}
_DECODER: Final = msgspec.json.Decoder(dict[str, Any])
# The end of a signed Code's payload, which always has the same length: `token_digest`, `version` and `xr_id`.
_PAYLOAD_TAIL_BYTES: Final = len(',"token_digest":"","version":1,"xr_id":"xr_"}') + DIGEST_CHARS + 22


class NotAnEntry(ValueError):
    """The bytes are no entry of this log."""


def digest(kind: str, member: str, canonical: bytes) -> bytes:
    """Return the 32 bytes of `D(kind/member; …)`, for a value that is given as its RFC 8785 bytes.

    Source: contract, section 11.
    """
    return hashlib.sha256(f"{_TAG}{kind}/{member}\0".encode("ascii") + canonical).digest()


def issued_entry(payload: bytes, signature: bytes) -> bytes:
    """Return the entry of an issued Code, whose payload Core signed."""
    facts = read_facts(payload)
    assert facts is not None, "Core signed it"
    code = digest("code.issued", "code", signed_code_bytes(payload, signature))
    answer = digest("code.issued", "answer", answer_bytes(facts))
    return b'{"answer":"%b","code":"%b","kind":"code.issued","v":1}' % (
        base64url.encode_to_bytes(answer),
        base64url.encode_to_bytes(code),
    )


def revoked_entry(payload: bytes, signature: bytes) -> bytes:
    """Return the entry of a revoked Code, as the function `revoked_log_entry` in schema.sql does."""
    return _entry_of_one("code.revoked", "code", signed_code_bytes(payload, signature))


def key_entry(kind: KeyEvent, key_id: str, public_key: bytes) -> bytes:
    """Return the entry of a change of one of Core's signing keys."""
    named = {"kid": key_id, "x": base64url.encode(public_key)}
    key = base64url.encode(digest(kind, "key", canonicalize(named)))
    return canonicalize({"v": 1, "kind": kind, "key": key, **named})


def audit_head_entry(organization_id: str, entries: int, chain_hash: str) -> bytes:
    """Return the entry of the head of an organisation's audit chain: the hash of the entry at position `entries`."""
    return _entry_of_one("audit.head", "head", audit_head_bytes(organization_id, entries, chain_hash))


def audit_head_bytes(organization_id: str, entries: int, chain_hash: str) -> bytes:
    """Return the RFC 8785 bytes of the head of an organisation's audit chain."""
    return canonicalize({"organization_id": organization_id, "entries": entries, "chain_hash": chain_hash})


def document_entry(canonical: bytes) -> bytes:
    """Return the entry of a signed document, given as its RFC 8785 bytes, which include the signature."""
    return _entry_of_one("document.sealed", "document", canonical)


def signed_code_bytes(payload: bytes, signature: bytes) -> bytes:
    """Return the RFC 8785 bytes of a whole `signed_code`: the payload with its signature at the place of the name.

    A payload that somebody altered may give other bytes, which are no canonical JSON; nothing else depends on them.
    """
    at = max(0, len(payload) - _PAYLOAD_TAIL_BYTES)
    return b'%b,"signature":"%b"%b' % (payload[:at], base64url.encode_to_bytes(signature), payload[at:])


def answer_bytes(facts: SignedFacts) -> bytes:
    """Return the RFC 8785 bytes of what a receiver knows of a Code: `{xr_id, token_digest, intent, policy}`."""
    return b'{"intent":%b,"policy":%b,"token_digest":"%b","xr_id":"%b"}' % (
        facts.intent,
        facts.policy,
        facts.token_digest.encode(),
        facts.xr_id.encode(),
    )


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry that was read. No other entry of the log has the first of its digests."""

    kind: str
    digests: tuple[bytes, ...]


def read_entry(data: bytes) -> LogEntry:
    """Return the entry with these bytes.

    Raises: NotAnEntry unless they are the RFC 8785 form of a closed entry of a known kind.
    """
    try:
        members = _DECODER.decode(data)
        kind = members["kind"]
        texts = [members[name] for name in _DIGESTS[kind]]
        named = {name: members[name] for name in ("kid", "x") if kind.startswith("key.")}
        closed = {"v": 1, "kind": kind, **dict(zip(_DIGESTS[kind], texts, strict=True)), **named}
        digests = tuple(base64url.decode(text) for text in texts)
        is_exact = len(data) <= ENTRY_BYTES_MAX and canonicalize(closed) == data
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, AttributeError):
        raise NotAnEntry("is no entry") from None
    is_committed = not named or digests[0] == digest(kind, "key", canonicalize(named))
    if not is_exact or not is_committed or any(len(each) != DIGEST_BYTES for each in digests):
        raise NotAnEntry("is no entry")
    return LogEntry(kind, digests)


def _entry_of_one(kind: str, member: str, canonical: bytes) -> bytes:
    text = base64url.encode_to_bytes(digest(kind, member, canonical))
    return b'{"%b":"%b","kind":"%b","v":1}' % (member.encode(), text, kind.encode())
