"""Core's published verification keys, as `GET /v1/keys` and `GET /v1/keys/history` list them."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import nacl.exceptions
from nacl.bindings import crypto_sign_PUBLICKEYBYTES
from nacl.signing import VerifyKey

from soundmark_sdk import base64url, strict_json, timestamps
from soundmark_sdk.failures import KeyUnknown, Unverifiable
from soundmark_sdk.members import SHORT_TEXT, read_members, read_text
from soundmark_sdk.strict_json import JsonValue

# One active key, one next key, and one retiring key for each rotation within the longest life of a Code: far fewer.
KEY_COUNT_MAX: Final = 1000

_KEY: Final = frozenset({"kty", "crv", "alg", "use", "kid", "x", "status"})
_PERIOD: Final = frozenset({"activated_at", "superseded_at"})
_FIXED: Final = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig"}
# What a key that is not ours may say of itself. RFC 9864 names the algorithm "Ed25519".
_OF_ED25519: Final = {"kty": ["OKP"], "crv": ["Ed25519"], "alg": ["EdDSA", "Ed25519"], "use": ["sig"]}
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
    return _collect_keys(strict_json.parse(body), _read_published_key)


def read_key_history(body: bytes) -> KeySet:
    """Return the keys of a JWK Set that may hold retired keys: with these, archives and certificates are verified.

    It is the answer of `GET /v1/keys/history`, or that of `GET /v1/keys`, which has fewer keys.

    Raises: Unverifiable.
    Source: wire contract, section 3, "GET /v1/keys".
    """
    return collect_historic_keys(strict_json.parse(body))


def read_trusted_keys(body: bytes) -> KeySet:
    """Return keys that somebody chose to trust: a JWK, a JWK Set, or the answer of `GET /v1/keys/history`.

    A key needs `kid` and `x` alone. As RFC 7517 asks, members that we do not know are ignored, and keys of another kind
    in a set are skipped.

    Raises: Unverifiable, also if there is no Ed25519 key.
    Source: RFC 7517, sections 4 and 5; RFC 8037, section 2.
    """
    document = strict_json.parse(body)
    entries = document.get("keys", [document]) if isinstance(document, dict) else None
    if not isinstance(entries, list) or len(entries) > KEY_COUNT_MAX:
        raise Unverifiable("These are not a JWK or a JWK Set of at most 1000 keys.")
    by_id: dict[str, VerifyKey] = {}
    for entry in entries:
        if not isinstance(entry, dict):
            raise Unverifiable("A key is not an object.")
        if any(name in entry and entry[name] not in values for name, values in _OF_ED25519.items()):
            continue
        key_id, key = _read_id_and_point(entry)
        if key_id in by_id:
            raise Unverifiable("Two keys have the same id.")
        by_id[key_id] = key
    if not by_id:
        raise Unverifiable("There is no Ed25519 signature key.")
    return KeySet(by_id)


def collect_historic_keys(document: JsonValue) -> KeySet:
    """Return the keys of a JWK Set that was parsed already, as `read_key_history` does.

    Raises: Unverifiable.
    """
    return _collect_keys(document, _read_historic_key)


def _collect_keys(document: JsonValue, read_key: Callable[[JsonValue], tuple[str, VerifyKey]]) -> KeySet:
    entries = read_members(document, {"keys"})["keys"]
    if not isinstance(entries, list) or len(entries) > KEY_COUNT_MAX:
        raise Unverifiable("The published keys are not a list of at most 1000.")
    by_id: dict[str, VerifyKey] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("kty"), str):
            raise Unverifiable("A published key has no type.")
        if entry["kty"] != "OKP":
            continue
        key_id, key = read_key(entry)
        if key_id in by_id:
            raise Unverifiable("Two published keys have the same id.")
        by_id[key_id] = key
    return KeySet(by_id)


def _read_published_key(entry: JsonValue) -> tuple[str, VerifyKey]:
    return _read_key(read_members(entry, _KEY), _STATUSES)


def _read_historic_key(entry: JsonValue) -> tuple[str, VerifyKey]:
    members = read_members(entry, _KEY, _PERIOD)
    if "activated_at" in members:
        timestamps.parse(members["activated_at"])
    if members.get("superseded_at") is not None:
        timestamps.parse(members["superseded_at"])
    return _read_key(members, _STATUSES | {"retired"})


def _read_key(members: Mapping[str, JsonValue], statuses: AbstractSet[str]) -> tuple[str, VerifyKey]:
    is_fixed = all(members[name] == value for name, value in _FIXED.items())
    status = members["status"]
    # A list cannot be looked up in a set.
    if not is_fixed or not isinstance(status, str) or status not in statuses:
        raise Unverifiable("A published key is not an Ed25519 signature key.")
    return _read_id_and_point(members)


def _read_id_and_point(members: Mapping[str, JsonValue]) -> tuple[str, VerifyKey]:
    point = members.get("x")
    if not isinstance(point, str) or len(raw := base64url.decode(point)) != crypto_sign_PUBLICKEYBYTES:
        raise Unverifiable("A key does not have 32 bytes.")
    return read_text(members.get("kid"), SHORT_TEXT), VerifyKey(raw)
