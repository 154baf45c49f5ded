"""The commitments in the entries of the log: hashes that reveal nothing to people who do not know the facts."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from soundmark_sdk import base64url, strict_json
from soundmark_sdk.closed_shapes import is_version_1
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.strict_json import JsonValue

# The kind of an entry, and its member that is the commitment.
Commitment: TypeAlias = Literal[
    "code.issued/code",
    "code.issued/answer",
    "code.revoked/code",
    "key.published/key",
    "key.activated/key",
    "key.superseded/key",
    "key.retired/key",
    "audit.head/head",
    "document.sealed/document",
]
DIGEST_BYTES: Final = 32
_TAG: Final = "soundmark/log/v1/"
_KEY_MEMBERS: Final = ("kid", "x")


def commit(commitment: Commitment, value: Mapping[str, Any]) -> str:
    """Return the digest of a value, as an entry has it: 43 characters of base64url.

    The value is the whole `signed_code` for `code`; `{xr_id, token_digest, intent, policy}` for `answer`;
    `{organization_id, entries, chain_hash}` for `head`; `{kid, x}` for `key`; the signed document for `document`.

    Raises: Unverifiable if the value has no canonical form.
    Source: wire contract, section 11.
    """
    canonical = strict_json.canonicalize(dict(value))
    return base64url.encode(hashlib.sha256(f"{_TAG}{commitment}\0".encode() + canonical).digest())


def check_entry(entry: bytes, commitment: Commitment, digest: str) -> None:
    """Accept only the bytes of a closed entry of this kind, whose member is this digest.

    Raises: Unverifiable.
    Source: wire contract, section 11.
    """
    kind, _, member = commitment.partition("/")
    document = strict_json.parse(entry)
    if not isinstance(document, dict) or document.get("kind") != kind:
        raise Unverifiable("The log has an entry of another kind.")
    digests = ("code", "answer") if kind == "code.issued" else (member,)
    named = _KEY_MEMBERS if kind.startswith("key.") else ()
    is_closed = set(document) == {"v", "kind", *digests, *named} and is_version_1(document["v"])
    if not is_closed or strict_json.canonicalize(document) != entry:
        raise Unverifiable("The entry in the log does not have the shape of its kind.")
    if not all(_is_digest(document[name]) for name in digests) or document[member] != digest:
        raise Unverifiable("The entry in the log is about something else.")


def _is_digest(value: JsonValue) -> bool:
    try:
        return isinstance(value, str) and len(base64url.decode(value)) == DIGEST_BYTES
    except Unverifiable:
        return False
