"""Verify answers and Codes: pure functions from received bytes to records, without network or clock."""

import copy
import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from soundmark_sdk import base64url, timestamps
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.keys import KeySet
from soundmark_sdk.members import (
    BROADCAST_TOKEN,
    DIGEST,
    ORGANIZATION_ID,
    PROJECT_ID,
    SHORT_TEXT,
    SIGNATURE,
    XR_ID,
    read_campaign_id,
    read_members,
    read_text,
    read_version,
)
from soundmark_sdk.records import MeasurementProof, Resolution, SignedCode
from soundmark_sdk.shapes import read_intent, read_measurement_proof, read_policy
from soundmark_sdk.strict_json import JsonValue, are_identical, canonicalize, parse
from soundmark_sdk.transparency.commitments import commit

# The clocks of receiver and server may differ by this much, either way (API v1, "Limits").
CLOCK_SKEW_MAX: Final = timedelta(minutes=2)
RESOLUTION_PROOF_LIFETIME_MAX: Final = timedelta(minutes=2)
MEASUREMENT_PROOF_LIFETIME_MAX: Final = timedelta(minutes=5)

# API v1, "Resolution proof envelope".
PAYLOAD_CHARACTERS_MIN: Final = 64
PAYLOAD_CHARACTERS_MAX: Final = 65536

_MIRRORED: Final = ("xr_id", "intent", "policy")
_ENVELOPE_MIRRORED: Final = ("version", "issued_at", "expires_at", "key_id")
_ANSWER: Final = frozenset({"xr_id", "signature_status", "intent", "policy", "resolution_proof"})
_ENVELOPE: Final = frozenset({"version", "key_id", "issued_at", "expires_at", "payload", "signature"})
_PAYLOAD: Final = frozenset(
    {"version", "xr_id", "intent", "policy", "token_digest", "issued_at", "expires_at", "key_id"},
)
_SIGNED_CODE: Final = frozenset(
    {
        *("version", "xr_id", "organization_id", "project_id", "campaign_id", "issuer", "issued_at", "expires_at"),
        *("intent", "policy", "token_digest", "key_id", "signature"),
    },
)


def digest_token(token: str) -> str:
    """Return the SHA-256 of a broadcast token's characters, in base64url. Signatures bind a Code to it."""
    return base64url.encode(hashlib.sha256(token.encode("ascii")).digest())


def verify_answer(body: bytes, token: str, keys: KeySet, now: datetime) -> Resolution:
    """Return what a resolution answer proves about a token, with every value taken from the signed payload.

    Checks that everything is I-JSON in closed shapes; that exactly the named key signed the payload (Ed25519); that the
    payload is canonical, equals the outer answer member by member and type by type, and is about this token; that the
    times hold, with at most two minutes of clock skew; and the measurement proof's signature, Code and integration.

    Raises: KeyUnknown when a newer key set could help; Unverifiable for everything else.
    Source: API v1, "Resolution proof envelope"; wire contract, section 3, "Resolution proof".
    """
    answer = read_members(parse(body), _ANSWER, {"measurement_proof"})
    if answer["signature_status"] != "verified":
        raise Unverifiable("The answer does not say that it is verified.")
    envelope = read_members(answer["resolution_proof"], _ENVELOPE)
    payload = _open_envelope(envelope, keys)
    _require_equal(answer, payload, (*_MIRRORED, *({"measurement_proof"} & (answer.keys() | payload.keys()))))
    _require_equal(envelope, payload, _ENVELOPE_MIRRORED)
    if payload["token_digest"] != digest_token(read_text(token, BROADCAST_TOKEN)):
        raise Unverifiable("The answer is about another token.")
    issued_at, expires_at = timestamps.parse(payload["issued_at"]), timestamps.parse(payload["expires_at"])
    check_times(issued_at, expires_at, now, RESOLUTION_PROOF_LIFETIME_MAX)
    return Resolution(
        xr_id=read_text(payload["xr_id"], XR_ID),
        intent=read_intent(payload["intent"]),
        policy=read_policy(payload["policy"]),
        measurement_proof=_verify_measurement(payload, keys, now),
        issued_at=issued_at,
        expires_at=expires_at,
        key_id=read_text(payload["key_id"], SHORT_TEXT),
        verified_at=now,
        verified_with=keys,
    )


def commit_answer(body: bytes, token: str) -> str:
    """Return the digest by which the transparency log knows a verified answer.

    Source: wire contract, section 11, `code.issued/answer`.
    """
    answer = read_members(parse(body), _ANSWER, {"measurement_proof"})
    return commit(
        "code.issued/answer", {**{name: answer[name] for name in _MIRRORED}, "token_digest": digest_token(token)}
    )


def verify_signed_code(
    signed_code: Mapping[str, Any],
    keys: KeySet,
    *,
    token: str | None = None,
    now: datetime | None = None,
) -> SignedCode:
    """Return what an `xr-code-v1` object proves: who issued which intent, and for how long.

    A Code stays authentic after its expiry. Pass `now` to also require that it has not expired (with two minutes of
    clock skew), and `token` to require that it belongs to that broadcast token. The object does not say whether the
    Code was revoked; only resolving does.

    Raises: KeyUnknown when a newer key set could help; Unverifiable for everything else.
    Source: wire contract, section 3, "signed_code".
    """
    members = read_members(dict(signed_code), _SIGNED_CODE)
    read_version(members["version"])
    key_id, signature = read_text(members["key_id"], SHORT_TEXT), read_text(members["signature"], SIGNATURE)
    keys.verify(key_id, canonicalize_signed(members), signature)
    code = _read_signed_code(members, key_id)
    if code.expires_at <= code.issued_at:
        raise Unverifiable("The Code expires before it begins.")
    if token is not None and code.token_digest != digest_token(read_text(token, BROADCAST_TOKEN)):
        raise Unverifiable("The Code belongs to another token.")
    if now is not None:
        check_times(code.issued_at, code.expires_at, now, lifetime_max=None)
    return code


def verify_measurement_proof(proof: JsonValue, keys: KeySet, now: datetime) -> MeasurementProof:
    """Return a measurement proof, once its own signature and times are verified.

    Raises: KeyUnknown when a newer key set could help; Unverifiable for everything else.
    Source: API v1, "Measurement proof"; wire contract, section 3, "Measurement proof".
    """
    record = read_measurement_proof(proof)
    assert isinstance(proof, dict), "read_measurement_proof accepts only objects"
    keys.verify(record.key_id, canonicalize_signed(proof), record.signature)
    check_times(record.issued_at, record.expires_at, now, MEASUREMENT_PROOF_LIFETIME_MAX)
    return record


def check_times(issued_at: datetime, expires_at: datetime, now: datetime, lifetime_max: timedelta | None) -> None:
    """Accept only a permitted lifetime that includes `now`, give or take the clock skew.

    Raises: Unverifiable.
    """
    lifetime = expires_at - issued_at
    if lifetime <= timedelta(0) or (lifetime_max is not None and lifetime > lifetime_max):
        raise Unverifiable("The times do not span a permitted lifetime.")
    # A sum could overflow for a distant date; the difference of two times cannot.
    if issued_at - now > CLOCK_SKEW_MAX:
        raise Unverifiable("It is issued in the future.")
    if now - expires_at >= CLOCK_SKEW_MAX:
        raise Unverifiable("It has expired.")


def canonicalize_signed(members: Mapping[str, JsonValue]) -> bytes:
    """Return the bytes that the `signature` of an object covers: the canonical form of its other members.

    Raises: Unverifiable for members that have no canonical form.
    Source: wire contract, section 3, "signed_code"; RFC 8785.
    """
    return canonicalize({name: value for name, value in members.items() if name != "signature"})


def _open_envelope(envelope: Mapping[str, JsonValue], keys: KeySet) -> Mapping[str, JsonValue]:
    """Return the payload, after verifying that exactly the named key signed its bytes."""
    read_version(envelope["version"])
    key_id = read_text(envelope["key_id"], SHORT_TEXT)
    encoded, signature = envelope["payload"], read_text(envelope["signature"], SIGNATURE)
    if not isinstance(encoded, str) or not PAYLOAD_CHARACTERS_MIN <= len(encoded) <= PAYLOAD_CHARACTERS_MAX:
        raise Unverifiable("The payload is too short or too long.")
    signed = base64url.decode(encoded)
    keys.verify(key_id, signed, signature)
    payload = parse(signed)
    # Only Core could have signed another spelling, but other implementations might read that differently.
    if canonicalize(payload) != signed:
        raise Unverifiable("The payload is not canonical.")
    return read_members(payload, _PAYLOAD, {"measurement_proof"})


def _require_equal(outer: Mapping[str, JsonValue], inner: Mapping[str, JsonValue], names: tuple[str, ...]) -> None:
    for name in names:
        if name not in outer or name not in inner or not are_identical(outer[name], inner[name]):
            raise Unverifiable("The answer differs from the signed payload.")


def _verify_measurement(payload: Mapping[str, JsonValue], keys: KeySet, now: datetime) -> MeasurementProof | None:
    """Return the verified proof for this Code and integration, or None when the policy does not measure."""
    policy = read_policy(payload["policy"])
    if policy.audience_measurement != ("measurement_proof" in payload):
        raise Unverifiable("The policy and the measurement proof contradict each other.")
    if not policy.audience_measurement:
        return None
    proof = verify_measurement_proof(payload["measurement_proof"], keys, now)
    if (proof.xr_id, proof.integration_id) != (payload["xr_id"], policy.audience_integration_id):
        raise Unverifiable("The measurement proof is about something else.")
    return proof


def _read_signed_code(members: Mapping[str, JsonValue], key_id: str) -> SignedCode:
    return SignedCode(
        xr_id=read_text(members["xr_id"], XR_ID),
        organization_id=read_text(members["organization_id"], ORGANIZATION_ID),
        project_id=read_text(members["project_id"], PROJECT_ID),
        campaign_id=read_campaign_id(members["campaign_id"]),
        issuer=read_text(members["issuer"], SHORT_TEXT),
        issued_at=timestamps.parse(members["issued_at"]),
        expires_at=timestamps.parse(members["expires_at"]),
        intent=read_intent(copy.deepcopy(members["intent"])),  # The object is still the caller's.
        policy=read_policy(members["policy"]),
        token_digest=read_text(members["token_digest"], DIGEST),
        key_id=key_id,
    )
