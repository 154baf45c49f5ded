"""The entries of the transparency log: closed objects that commit to what happened, and reveal nothing of it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

from soundmark.core.domain.codes.signed_facts import read_facts
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.text import base64url

KeyEvent = Literal["key.published", "key.activated", "key.superseded", "key.retired"]

DIGEST_BYTES: Final = 32
DIGEST_CHARS: Final = 43
ENTRY_BYTES_MAX: Final = 512  # The longest kind has less than 250.
QUEUED_MAX: Final = 256  # Codes whose commitments wait in one row.
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
    return _tagged(kind, member, canonical).digest()


class SignedRecord(Protocol):
    """A Code, or anything else with its signed bytes."""

    @property
    def payload(self) -> bytes: ...

    @property
    def signature(self) -> bytes: ...


def commit_issued(issued: Sequence[SignedRecord]) -> bytes:
    """Return the commitments to Codes that were issued together: 64 bytes of each, for its owner and its receivers."""
    head = issued[0].payload[:-_PAYLOAD_TAIL_BYTES]
    facts = read_facts(issued[0].payload)
    assert facts is not None, "Core signed it"
    # What they share is hashed once. RFC 8785 sorts what differs to the end, in both values.
    of_code = _tagged("code.issued", "code", head + b',"signature":"')
    of_answer = _tagged("code.issued", "answer", b'{"intent":%b,"policy":%b' % (facts.intent, facts.policy))
    commitments = list[bytes]()
    for code in issued:
        assert code.payload.startswith(head), "Codes of one issuance differ at the end alone"
        tail = code.payload[-_PAYLOAD_TAIL_BYTES:]
        whole, answer = of_code.copy(), of_answer.copy()
        whole.update(base64url.encode_to_bytes(code.signature) + b'"' + tail)
        answer.update(tail.replace(b',"version":1', b"", 1))
        commitments += (whole.digest(), answer.digest())
    return b"".join(commitments)


def commit_revoked(payload: bytes, signature: bytes) -> bytes:
    """Return the commitment to a revoked Code, as the function of this name in schema.sql does.

    A payload that somebody altered may give other bytes than canonical JSON; nothing else depends on them.
    """
    at = max(0, len(payload) - _PAYLOAD_TAIL_BYTES)
    signed_code = b'%b,"signature":"%b"%b' % (payload[:at], base64url.encode_to_bytes(signature), payload[at:])
    return digest("code.revoked", "code", signed_code)


def issued_entry(commitments: bytes) -> bytes:
    """Return the entry of an issued Code with these 64 bytes."""
    code, answer = commitments[:DIGEST_BYTES], commitments[DIGEST_BYTES:]
    return b'{"answer":"%b","code":"%b","kind":"code.issued","v":1}' % (
        base64url.encode_to_bytes(answer),
        base64url.encode_to_bytes(code),
    )


def revoked_entry(commitment: bytes) -> bytes:
    """Return the entry of a revoked Code with these 32 bytes."""
    return b'{"code":"%b","kind":"code.revoked","v":1}' % base64url.encode_to_bytes(commitment)


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


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry that was read. No other entry of the log has the first of its digests."""

    kind: str
    digests: tuple[bytes, ...]


# The bytes of an entry, and what they say.
ReadEntry: TypeAlias = tuple[bytes, LogEntry]


def code_entries(kind: Literal["code.issued", "code.revoked"], commitments: bytes) -> Iterator[ReadEntry]:
    """Yield the entries of Codes that were issued together, with 64 bytes each, or revoked together, with 32.

    Raises: NotAnEntry for bytes that are left over.
    """
    make, size = (issued_entry, 2 * DIGEST_BYTES) if kind == "code.issued" else (revoked_entry, DIGEST_BYTES)
    for start in range(0, len(commitments), size):
        each = commitments[start : start + size]
        if len(each) != size:
            raise NotAnEntry("is no entry")
        yield make(each), LogEntry(kind, tuple(each[at : at + DIGEST_BYTES] for at in range(0, size, DIGEST_BYTES)))


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


def _tagged(kind: str, member: str, beginning: bytes) -> "hashlib._Hash":
    return hashlib.sha256(f"{_TAG}{kind}/{member}\0".encode("ascii") + beginning)


def _entry_of_one(kind: str, member: str, canonical: bytes) -> bytes:
    text = base64url.encode_to_bytes(digest(kind, member, canonical))
    return b'{"%b":"%b","kind":"%b","v":1}' % (member.encode(), text, kind.encode())
