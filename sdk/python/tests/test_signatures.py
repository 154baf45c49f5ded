"""A signature has one spelling, belongs to a key that somebody can own, and serves one purpose."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest
import rfc8785
from soundmark_sdk import KeySet, ReceiverFailure, read_key_set, verify_answer, verify_signed_code
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.verification import verify_measurement_proof

from .issuer import MEASURED, NOW, TOKEN, Issuer, Json, base64url, compact

ORDER = 2**252 + 27742317777372353535851937790883648493  # RFC 8032, section 5.1.
PRIME = 2**255 - 19
MESSAGES = [b"message %d" % number for number in range(32)]


def write_point(y: int, sign: int) -> bytes:
    return (y | sign << 255).to_bytes(32, "little")


# The eight points whose order divides eight, in every spelling that fits into 256 bits. With such a key, anybody can
# write a signature that satisfies Ed25519's equation for every message, or for one message in eight.
Y_OF_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
SMALL = [
    write_point(y, sign)
    for y in (0, 1, PRIME - 1, PRIME, PRIME + 1, Y_OF_ORDER_8, PRIME - Y_OF_ORDER_8)
    for sign in (0, 1)
]


@pytest.fixture
def keys(issuer: Issuer) -> KeySet:
    """The published keys."""
    return read_key_set(issuer.key_set())


def stretch_signature(signature: str) -> str:
    """Return the signature with a scalar beyond the order of the group, which satisfies the equation as well."""
    whole = base64.urlsafe_b64decode(signature + "==")
    scalar = int.from_bytes(whole[32:], "little") + ORDER
    return base64url(whole[:32] + scalar.to_bytes(32, "little"))


def test_a_signature_has_only_one_spelling(issuer: Issuer, keys: KeySet) -> None:
    """RFC 8032, section 5.1.7: the scalar is below the order of the group."""
    for message in MESSAGES:
        keys.verify(issuer.key_id, message, issuer.sign(message))
        with pytest.raises(Unverifiable):
            keys.verify(issuer.key_id, message, stretch_signature(issuer.sign(message)))


def test_the_payload_has_only_one_spelling(issuer: Issuer, keys: KeySet) -> None:
    code, payload = issuer.signed_code(), issuer.payload()
    envelope = issuer.envelope(payload)
    proof = issuer.proof()
    for respelt in (
        issuer.answer_to(payload, resolution_proof={**envelope, "signature": stretch_signature(envelope["signature"])}),
        issuer.answer(policy=MEASURED, measurement_proof={**proof, "signature": stretch_signature(proof["signature"])}),
    ):
        with pytest.raises(Unverifiable):
            verify_answer(compact(respelt), TOKEN, keys, NOW)
    with pytest.raises(Unverifiable):
        verify_signed_code({**code, "signature": stretch_signature(code["signature"])}, keys)


def test_a_key_of_small_order_accepts_no_signature(issuer: Issuer, subtests: pytest.Subtests) -> None:
    for point in SMALL:
        with subtests.test(point=point):
            keys = read_key_set(compact({"keys": [issuer.jwk(x=base64url(point))]}))
            for message in MESSAGES:
                for first in SMALL:
                    with pytest.raises(Unverifiable):
                        keys.verify(issuer.key_id, message, base64url(first + bytes(32)))


def test_a_signature_with_a_point_of_small_order_is_refused(issuer: Issuer, keys: KeySet) -> None:
    for point in SMALL:
        for scalar in (bytes(32), b"\x01" + bytes(31), ORDER.to_bytes(32, "little")):
            with pytest.raises(Unverifiable):
                keys.verify(issuer.key_id, MESSAGES[0], base64url(point + scalar))


# The bytes of everything that Core signs, all with the same key.
def make_envelope(signed: bytes, signature: str, times: Mapping[str, Any]) -> Json:
    named = {name: times[name] for name in ("key_id", "issued_at", "expires_at")}
    return {"version": 1, **named, "payload": base64url(signed), "signature": signature}


@pytest.mark.parametrize("kind", ["code", "proof"])
def test_a_signature_made_for_another_purpose_proves_no_answer(issuer: Issuer, keys: KeySet, kind: str) -> None:
    """A Code has every member of a payload, and a proof has many; only the closed shapes tell them apart."""
    document = issuer.signed_code() if kind == "code" else issuer.proof()
    signature = document.pop("signature")
    envelope = make_envelope(rfc8785.dumps(document), signature, document)
    keys.verify(issuer.key_id, rfc8785.dumps(document), signature)
    answer = issuer.answer_to({**issuer.payload(), **document}, resolution_proof=envelope)
    with pytest.raises(Unverifiable):
        verify_answer(compact(answer), TOKEN, keys, NOW)


@pytest.mark.parametrize("kind", ["payload", "proof"])
def test_a_signature_made_for_another_purpose_proves_no_code(issuer: Issuer, keys: KeySet, kind: str) -> None:
    document = issuer.signed(issuer.payload()) if kind == "payload" else issuer.proof()
    whole = {**issuer.signed_code(), **document}
    for presented in (document, whole):
        with pytest.raises(ReceiverFailure):
            verify_signed_code(presented, keys)


@pytest.mark.parametrize("kind", ["payload", "code"])
def test_a_signature_made_for_another_purpose_proves_no_measurement(issuer: Issuer, keys: KeySet, kind: str) -> None:
    document = issuer.signed(issuer.payload()) if kind == "payload" else issuer.signed_code()
    proof = issuer.proof()
    for presented in (document, {**proof, **document}, {**proof, "signature": document["signature"]}):
        with pytest.raises(Unverifiable):
            verify_measurement_proof(presented, keys, NOW)
    assert verify_measurement_proof(proof, keys, NOW).proof_id == proof["proof_id"]


def test_a_weaker_kind_of_key_cannot_replace_ours(issuer: Issuer, subtests: pytest.Subtests) -> None:
    for changes in [
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "Ed25519ph"},
        {"alg": "EdDSA "},
        {"crv": "Ed448"},
        {"crv": "P-256"},
        {"kty": "oct"},
        {"kty": "EC"},
        {"kty": "RSA"},
    ]:
        with subtests.test(changes=changes), pytest.raises(Unverifiable):
            read_key_set(compact({"keys": [issuer.jwk(**changes)]})).verify(issuer.key_id, b"x", issuer.sign(b"x"))
