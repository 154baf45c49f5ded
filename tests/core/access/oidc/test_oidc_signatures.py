"""The signature of an access token: no forgery is accepted, and each key serves only its own purpose."""

import base64
import re
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from support.identity.oidc_access import is_accepted
from support.identity.oidc_issuer import DISCOVERY, JWKS, IssuerKey, OidcIssuer, encode_part, make_issuer_key
from support.identity.token_forgeries import make_forgeries

from soundmark.core.access.oidc import OidcAccess
from soundmark.kit.http.outbound.issuer_keys import verification_keys

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_ED25519_ORDER = 2**252 + 27742317777372353535851937790883648493


async def test_a_forgery_is_refused(access: OidcAccess, issuer: OidcIssuer) -> None:
    accepted = {name for name, token in make_forgeries(issuer).items() if await is_accepted(access, token)}
    assert accepted == set()
    assert await is_accepted(access, issuer.token())
    assert set(issuer.requested) == {DISCOVERY, JWKS}, "no address that a token names is asked for anything"


async def test_a_malformed_token_causes_no_request_to_the_issuer(access: OidcAccess, issuer: OidcIssuer) -> None:
    hopeless = re.compile(r"alg |HS|no alg|kid (None|0|True|\[|\{)|dots|text|\w+ parts|the JSON form|.* nested deeply")
    tokens = {name: token for name, token in make_forgeries(issuer).items() if hopeless.match(name)}
    assert len(tokens) > 45
    header_is_a_list = "W10.e30.AA"
    for token in (*tokens.values(), header_is_a_list, issuer.token(padding="x" * 10 * 1024), "x" * 9 * 1024, ""):
        assert not await is_accepted(access, token)
    assert issuer.requested == []


async def test_a_token_has_at_most_8_kib(access: OidcAccess, issuer: OidcIssuer) -> None:
    # Three bytes of claims become four characters: of two neighbours, one is just within the limit, the other beyond.
    padding = 8192 * 3 // 4
    while len(issuer.token(padding="x" * padding)) > 8192:
        padding -= 1
    within, beyond = (issuer.token(padding="x" * chars) for chars in (padding, padding + 1))
    assert 8188 < len(within) <= 8192 < len(beyond) <= 8196
    assert await is_accepted(access, within)
    assert not await is_accepted(access, beyond)


@pytest.mark.parametrize("alg", ["RS256", "PS256", "ES256", "EdDSA"])
async def test_a_signature_that_anybody_can_write_is_refused(access: OidcAccess, issuer: OidcIssuer, alg: str) -> None:
    """Zeros verify under every key if a library forgets to check; in one library they did for years."""
    issuer.keys = [make_issuer_key("only", alg)]
    text, _, genuine = issuer.token().rpartition(".")
    length = len(genuine) * 3 // 4
    order = _P256_ORDER.to_bytes(32, "big")
    written = [
        bytes(length),
        b"\xff" * length,
        bytes(length - 1) + b"\1",
        b"\1" + bytes(length - 1),
        order + order,
        b"\1".rjust(32, b"\0") * 2,
        bytes(32) + order,
        bytes(length + 1),
        bytes(length - 1),
    ]
    for signature in written:
        assert not await is_accepted(access, f"{text}.{encode_part(signature)}")
    assert await is_accepted(access, f"{text}.{genuine}")


async def test_a_signature_has_one_spelling(access: OidcAccess, issuer: OidcIssuer) -> None:
    """Ed25519: a scalar beyond the group's order is invalid. ES256: two numbers of equal length, not DER."""
    for alg in ("EdDSA", "ES256"):
        issuer.keys = [make_issuer_key(f"of {alg}", alg)]
        token = issuer.token()
        text, _, genuine = token.rpartition(".")
        signature = base64.urlsafe_b64decode(genuine + "==")
        one, other = signature[:32], signature[32:]
        if alg == "EdDSA":
            scalar = int.from_bytes(other, "little") + _ED25519_ORDER
            respelt = one + scalar.to_bytes(32, "little")
        else:
            respelt = encode_dss_signature(int.from_bytes(one, "big"), int.from_bytes(other, "big"))
        assert await is_accepted(access, token)
        assert not await is_accepted(access, f"{text}.{encode_part(respelt)}")
        assert not await is_accepted(access, f"{text}.{encode_part(other + one)}")


@pytest.mark.parametrize(
    ("alg", "used"),
    [("RS256", "PS256"), ("PS256", "RS256"), ("ES256", "EdDSA"), ("EdDSA", "ES256"), ("RS256", "ES256")],
)
async def test_a_key_is_used_with_its_own_algorithm_only(
    access: OidcAccess, issuer: OidcIssuer, alg: str, used: str
) -> None:
    published = make_issuer_key("only", alg)
    issuer.keys = [published]
    same = {alg, used} == {"RS256", "PS256"}
    by = IssuerKey("only", used, published.private) if same else make_issuer_key("only", used)
    assert not await is_accepted(access, issuer.token(by=by))
    assert await is_accepted(access, issuer.token())


async def test_a_key_without_an_algorithm_is_used_as_its_type_allows(access: OidcAccess, issuer: OidcIssuer) -> None:
    (only,) = issuer.keys
    issuer.jwks = {"keys": [{name: value for name, value in only.jwk.items() if name != "alg"}]}
    for alg in ("RS256", "PS256"):
        assert await is_accepted(access, issuer.token(by=IssuerKey("first", alg, only.private)))


def test_keys_for_other_purposes_are_skipped() -> None:
    good = make_issuer_key("good").jwk
    weak = rsa.generate_private_key(65537, 1024)  # noqa: S505 - what is refused
    passed_over: list[Any] = [
        {**good, "kid": "encryption", "use": "enc"},
        {**good, "kid": "operations", "key_ops": ["encrypt"]},
        {**good, "kid": "algorithm", "alg": "RS512"},
        {**good, "kid": "encrypting algorithm", "alg": "RSA-OAEP"},
        {**good, "kid": "hmac", "alg": "HS256"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "symmetric", "alg": "HS256", "use": "sig"},
        {**good, "kid": 7},
        {**good, "kid": "no modulus", "n": ""},
        {**good, "kid": "broken modulus", "n": "!"},
        {**good, "kid": "broken exponent", "e": "AQ"},
        {**IssuerKey("weak", "RS256", weak).jwk},
        {**make_issuer_key("curve", "ES256").jwk, "crv": "P-384"},
        {**make_issuer_key("point", "ES256").jwk, "x": "AAAA"},
        {**make_issuer_key("okp", "EdDSA").jwk, "crv": "X25519"},
        {"kid": "nothing"},
        "text",
        None,
    ]
    assert set(verification_keys({"keys": [*passed_over, good]})) == {("good", "RS256"), (None, "RS256")}


def test_a_key_without_a_purpose_may_sign() -> None:
    plain = {name: value for name, value in make_issuer_key("plain").jwk.items() if name != "use"}
    assert set(verification_keys({"keys": [plain]})) == {("plain", "RS256"), (None, "RS256")}


def test_a_member_that_is_null_is_absent() -> None:
    nulls = {**make_issuer_key("plain").jwk, "use": None, "alg": None, "key_ops": None, "x5t": None}
    assert set(verification_keys({"keys": [nulls]})) == {
        ("plain", "RS256"),
        ("plain", "PS256"),
        (None, "RS256"),
        (None, "PS256"),
    }
    assert set(verification_keys({"keys": [{**nulls, "kid": None}]})) == {(None, "RS256"), (None, "PS256")}


def test_a_set_without_keys_is_empty(subtests: pytest.Subtests) -> None:
    for document in [{}, {"keys": None}, {"keys": {}}, {"keys": []}, {"keys": "x"}]:
        with subtests.test(document=document):
            assert verification_keys(document) == {}


def test_an_rsa_key_has_2048_to_8192_bits(subtests: pytest.Subtests) -> None:
    for bits, is_used in [(2047, False), (2048, True), (8192, True), (8193, False)]:
        with subtests.test(bits=bits, is_used=is_used):
            modulus = ((1 << bits) - 1).to_bytes(-(-bits // 8), "big")
            key = {"kty": "RSA", "kid": "long", "e": "AQAB", "n": encode_part(modulus)}
            found = {(kid, algorithm) for kid in ("long", None) for algorithm in ("RS256", "PS256")}
            assert set(verification_keys({"keys": [key]})) == (found if is_used else set())
