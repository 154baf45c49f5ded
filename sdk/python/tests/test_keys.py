from typing import Any

import pytest
from soundmark_sdk.failures import KeyUnknown, Unverifiable
from soundmark_sdk.keys import read_key_history, read_key_set, read_trusted_keys

from .issuer import Issuer, base64url, compact


@pytest.mark.parametrize("status", ["active", "next", "retiring"])
def test_every_published_key_verifies(issuer: Issuer, status: str) -> None:
    keys = read_key_set(compact({"keys": [issuer.jwk(status=status)]}))
    keys.verify(issuer.key_id, b"message", issuer.sign(b"message"))
    assert list(keys.by_id) == [issuer.key_id]


def test_only_the_named_key_is_tried(issuer: Issuer) -> None:
    other = Issuer(bytes(32), "key-2026-12")
    keys = read_key_set(issuer.key_set(other.jwk()))
    with pytest.raises(Unverifiable) as failure:
        keys.verify(other.key_id, b"message", issuer.sign(b"message"))
    assert not isinstance(failure.value, KeyUnknown)


@pytest.mark.parametrize("key_id", ["KEY-2026-11", "key-2026-1", "key-2026-11 ", ""])
def test_a_key_id_is_compared_exactly(issuer: Issuer, key_id: str) -> None:
    with pytest.raises(KeyUnknown):
        read_key_set(issuer.key_set()).verify(key_id, b"message", issuer.sign(b"message"))


def test_keys_of_another_type_are_skipped(issuer: Issuer) -> None:
    """RFC 7517, section 5: Core may one day publish a key for another version beside today's."""
    keys = read_key_set(issuer.key_set({"kty": "AKP", "alg": "ML-DSA-65", "pub": "AA", "kid": "later"}))
    assert list(keys.by_id) == [issuer.key_id]


def test_a_key_set_with_one_wrong_key_is_refused(issuer: Issuer, subtests: pytest.Subtests) -> None:
    for changes in [
        {"crv": "X25519"},
        {"alg": "ES256"},
        {"use": "enc"},
        {"status": "retired"},
        {"status": ["active"]},
        {"status": {}},
        {"kid": ""},
        {"kid": "k" * 161},
        {"kid": 1},
        {"kty": None},
        {"x": base64url(bytes(31))},
        {"x": base64url(bytes(33))},
        {"x": None},
        {"d": base64url(bytes(32))},
    ]:
        with subtests.test(changes=changes), pytest.raises(Unverifiable):
            read_key_set(issuer.key_set(issuer.jwk(**{"kid": "other", **changes})))


def test_a_key_set_of_another_shape_is_refused(subtests: pytest.Subtests) -> None:
    for body in [b"[]", b'{"keys":{}}', b"{}", b'{"keys":[],"more":1}', b'{"keys":[1]}', b"x"]:
        with subtests.test(body=body), pytest.raises(Unverifiable):
            read_key_set(body)


def test_a_key_id_belongs_to_only_one_key(issuer: Issuer) -> None:
    with pytest.raises(Unverifiable):
        read_key_set(issuer.key_set(issuer.jwk(status="retiring")))


def test_a_set_has_at_most_1000_keys(issuer: Issuer) -> None:
    many = [issuer.jwk(kid=str(number)) for number in range(1000)]
    for read in (read_key_set, read_trusted_keys):
        assert len(read(compact({"keys": many})).by_id) == 1000
        with pytest.raises(Unverifiable):
            read(issuer.key_set(*many))


def test_a_key_of_small_order_verifies_nothing(issuer: Issuer) -> None:
    """Under the neutral point, the signature (neutral point, 0) would satisfy Ed25519's equation for any message."""
    neutral = b"\x01" + bytes(31)
    keys = read_key_set(compact({"keys": [issuer.jwk(x=base64url(neutral))]}))
    with pytest.raises(Unverifiable):
        keys.verify(issuer.key_id, b"any message", base64url(neutral + bytes(32)))


@pytest.mark.parametrize("superseded_at", [None, "2026-11-20T10:00:00.000Z"])
def test_the_history_holds_retired_keys(issuer: Issuer, superseded_at: str | None) -> None:
    period = {"activated_at": "2026-05-20T10:00:00.000Z", "superseded_at": superseded_at}
    body = compact({"keys": [issuer.jwk(status="retired", **period)]})
    read_key_history(body).verify(issuer.key_id, b"m", issuer.sign(b"m"))
    with pytest.raises(Unverifiable):
        read_key_set(body)
    assert read_key_history(issuer.key_set()) == read_key_set(issuer.key_set())


@pytest.mark.parametrize(
    "changes", [{"activated_at": "today"}, {"activated_at": None}, {"superseded_at": 1}, {"status": "lost"}, {"d": "A"}]
)
def test_a_history_with_one_wrong_key_is_refused(issuer: Issuer, changes: dict[str, Any]) -> None:
    with pytest.raises(Unverifiable):
        read_key_history(compact({"keys": [issuer.jwk(**{"status": "retired", **changes})]}))


def test_trusted_keys_are_one_key_a_set_or_the_answer_of_the_service(issuer: Issuer) -> None:
    published = issuer.jwk(status="retired", activated_at="2026-05-20T10:00:00.000Z", superseded_at=None)
    plain = {"kid": published["kid"], "x": published["x"]}
    of_a_tool = {**plain, "kty": "OKP", "crv": "Ed25519", "alg": "Ed25519", "key_ops": ["verify"], "more": {}}
    of_another_kind = {"kty": "EC", "crv": "P-256", "kid": "another", "x": "A", "y": "A"}
    for document in (plain, of_a_tool, published, {"keys": [plain]}, {"keys": [of_another_kind, published], "more": 1}):
        read_trusted_keys(compact(document)).verify(issuer.key_id, b"m", issuer.sign(b"m"))


def test_what_holds_no_key_to_trust_is_refused(subtests: pytest.Subtests) -> None:
    for document in [
        *([], 1, {}, {"keys": {}}, {"keys": []}, {"keys": [1]}, {"kid": "a"}, {"kid": 1, "x": "A" * 43}),
        *({"kid": "a", "x": "A" * 42}, {"x": "A" * 43}, {"kid": "a", "x": "A" * 43, "kty": "EC"}),
        *({"kid": "a", "x": "A" * 43, "use": "enc"}, {"kid": "a", "x": "A" * 43, "alg": "ES256"}),
        {"kid": "a", "x": "A" * 43, "kty": "OKP", "crv": "X25519"},
        {"keys": [{"kid": "a", "x": "A" * 43}] * 2},
    ]:
        with subtests.test(document=document), pytest.raises(Unverifiable):
            read_trusted_keys(compact(document))
