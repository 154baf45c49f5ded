"""Core's published verification keys, as `GET /v1/keys` lists them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import nacl.exceptions
from nacl.bindings import crypto_sign_PUBLICKEYBYTES
from nacl.signing import VerifyKey

from soundmark_sdk import base64url, strict_json
from soundmark_sdk.failures import KeyUnknown, Unverifiable
from soundmark_sdk.members import SHORT_TEXT, read_members, read_text
from soundmark_sdk.strict_json import JsonValue

# One active key, one next key, and one retiring key for each rotation within the longest life of a Code: far fewer.
KEY_COUNT_MAX: Final = 1000

_KEY: Final = frozenset({"kty", "crv", "alg", "use", "kid", "x", "status"})
_FIXED: Final = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig"}
# A `next` key verifies too: it may have become `active` since this set was fetched.
_STATUSES: Final = frozenset({"active", "next", "retiring"})


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys that were published at one moment, by key id."""

    by_id: Mapping[str, VerifyKey]

    def verify(self, key_id: str, message: bytes, signature: str) -> None:
        """Accept only a signature over exactly these bytes by exactly the key `key_id`.

        Raises: KeyUnknown when the set lacks that key; Unverifiable when the signature is wrong.
        Source: RFC 8032.
        """
        key = self.by_id.get(key_id)
        if key is None:
            raise KeyUnknown
        try:
            key.verify(message, base64url.decode(signature))
        except (nacl.exceptions.CryptoError, ValueError):
            raise Unverifiable("A signature does not verify.") from None


def read_key_set(body: bytes) -> KeySet:
    """Return the keys of a JWK Set as Core publishes it.

    Keys of another type (`kty`) are skipped, as RFC 7517 asks, so that Core can publish one for a later version
    beside them. Everything else must have exactly the published shape.

    Raises: Unverifiable.
    Source: wire contract, section 3, "GET /v1/keys"; RFC 7517, section 5; RFC 8037.
    """
    entries = read_members(strict_json.parse(body), {"keys"})["keys"]
    if not isinstance(entries, list) or len(entries) > KEY_COUNT_MAX:
        raise Unverifiable("The published keys are not a list of at most 1000.")
    by_id: dict[str, VerifyKey] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("kty"), str):
            raise Unverifiable("A published key has no type.")
        if entry["kty"] != "OKP":
            continue
        key_id, key = _read_key(entry)
        if key_id in by_id:
            raise Unverifiable("Two published keys have the same id.")
        by_id[key_id] = key
    return KeySet(by_id)


def _read_key(entry: JsonValue) -> tuple[str, VerifyKey]:
    members = read_members(entry, _KEY)
    if any(members[name] != value for name, value in _FIXED.items()) or members["status"] not in _STATUSES:
        raise Unverifiable("A published key is not an Ed25519 signature key.")
    point = members["x"]
    if not isinstance(point, str) or len(raw := base64url.decode(point)) != crypto_sign_PUBLICKEYBYTES:
        raise Unverifiable("A published key does not have 32 bytes.")
    return read_text(members["kid"], SHORT_TEXT), VerifyKey(raw)
