"""Access tokens of an identity provider: which are good, which are not, and what becomes of its faults."""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import misbehaving
import pytest
from core_app import OPERATOR_TOKEN, Api, FakeClock, core_settings, running_core
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from issuer import CLIENT_ID, DISCOVERY, JWKS, Issuer, IssuerKey, key, running_issuer, unsigned
from misbehaving import Behaviour, answer

from soundmark.core.access.issuer_keys import verification_keys
from soundmark.core.access.oidc import OidcAccess
from soundmark.core.domain.scope import User
from soundmark.core.problems import EmailNotVerified, IdentityProviderUnavailable
from soundmark.kit.guarded_url import is_guarded_url
from soundmark.kit.problems import Unauthenticated
from soundmark.kit.secret import Secret
from soundmark.kit.settings import SettingsInvalid

PATIENCE_S, IMPATIENCE_S = 30, 0.3
FRESH_S, AGAIN_S = 180, 10


@pytest.fixture
async def issuer(clock: FakeClock) -> AsyncIterator[Issuer]:
    async with running_issuer(clock) as running:
        yield running


@contextlib.asynccontextmanager
async def access_to(issuer: Issuer, clock: FakeClock) -> AsyncIterator[OidcAccess]:
    access = OidcAccess(issuer.url, CLIENT_ID, clock, timeout_s=PATIENCE_S)
    try:
        yield access
    finally:
        await access.aclose()


@pytest.fixture
async def access(issuer: Issuer, clock: FakeClock) -> AsyncIterator[OidcAccess]:
    async with access_to(issuer, clock) as made:
        yield made


@contextlib.contextmanager
def impatient(access: OidcAccess) -> Iterator[None]:
    """The deadline is short, for an issuer that will not answer; a good one on a busy machine is given its time."""
    access._keys._timeout_s = IMPATIENCE_S  # type: ignore[misc]  # final everywhere else  # a fault is injected
    yield
    access._keys._timeout_s = PATIENCE_S  # type: ignore[misc]  # final everywhere else


async def is_accepted(access: OidcAccess, token: str) -> bool:
    try:
        await access.user_of(token)
    except Unauthenticated:
        return False
    return True


# What a token says.


async def test_a_token_names_a_person(access: OidcAccess, issuer: Issuer) -> None:
    user = await access.user_of(issuer.token("alice"))
    assert user == User("alice", "alice@example.org", has_mfa=True, is_platform_admin=False)


@pytest.mark.parametrize("alg", ["RS256", "PS256", "ES256", "EdDSA"])
async def test_every_algorithm_of_the_list_is_accepted(access: OidcAccess, issuer: Issuer, alg: str) -> None:
    issuer.keys = [key("only", alg)]
    assert await is_accepted(access, issuer.token())


@pytest.mark.parametrize(
    ("changes", "has_mfa"),
    [
        ({"acr": "2"}, True),
        ({"acr": "1"}, False),
        ({"acr": 2}, False),
        ({"acr": None}, False),
        ({"acr": ["2"]}, False),
        ({"acr": None, "amr": ["pwd", "otp"]}, True),
        ({"acr": "1", "amr": ["otp"]}, True),
        ({"acr": None, "amr": ["pwd"]}, False),
        ({"acr": None, "amr": "otp"}, False),
        ({"acr": None, "amr": {"otp": 1}}, False),
    ],
)
async def test_a_second_factor_is_told_by_acr_or_amr(
    access: OidcAccess, issuer: Issuer, changes: dict[str, Any], has_mfa: bool
) -> None:
    assert (await access.user_of(issuer.token(**changes))).has_mfa is has_mfa


@pytest.mark.parametrize(
    ("realm_access", "is_admin"),
    [
        ({"roles": ["x", "svc_platform_admin"]}, True),
        ({"roles": ["SVC_PLATFORM_ADMIN"]}, False),
        ({"roles": "svc_platform_admin"}, False),
        ({"roles": {"svc_platform_admin": 1}}, False),
        ({}, False),
        (["svc_platform_admin"], False),
        (None, False),
    ],
)
async def test_the_platform_is_administered_by_a_role_of_the_realm(
    access: OidcAccess, issuer: Issuer, realm_access: Any, is_admin: bool
) -> None:
    assert (await access.user_of(issuer.token(realm_access=realm_access))).is_platform_admin is is_admin


@pytest.mark.parametrize(
    "changes",
    [
        {"email_verified": False},
        {"email_verified": None},
        {"email_verified": "true"},
        {"email_verified": 1},
        {"email": None},
        {"email": ""},
        {"email": ["a@example.org"]},
        {"email": "a@example.org\n"},
        {"email": "a" * 250 + "@b.de"},
    ],
    ids=str,
)
async def test_an_address_that_is_not_verified_is_said_to_be_so(
    access: OidcAccess, issuer: Issuer, changes: dict[str, Any]
) -> None:
    with pytest.raises(EmailNotVerified):
        await access.user_of(issuer.token(**changes))


async def test_an_unverified_address_is_not_told_of_a_bad_token(access: OidcAccess, issuer: Issuer) -> None:
    assert not await is_accepted(access, issuer.token(email_verified=False, azp="other"))


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": None},
        {"iss": "https://other.example"},
        {"iss": ["https://other.example"]},
        {"azp": "other"},
        {"azp": "other", "aud": CLIENT_ID},
        {"azp": "", "aud": CLIENT_ID},
        {"azp": ["console"]},
        {"azp": None},
        {"azp": None, "aud": None},
        {"azp": None, "aud": ["account", "other"]},
        {"azp": None, "aud": {CLIENT_ID: 1}},
        {"azp": None, "aud": "console2"},
        {"typ": "ID"},
        {"typ": "Refresh"},
        {"typ": "bearer"},
        {"typ": ["Bearer"]},
        {"typ": None, "at_hash": "x"},
        {"sub": None},
        {"sub": ""},
        {"sub": "s" * 256},
        {"sub": 7},
        {"sub": "a\0b"},
        {"exp": None},
        {"exp": True},
        {"exp": "99999999999"},
        {"exp": [99999999999]},
        {"nbf": "0"},
        {"iat": "0"},
    ],
    ids=str,
)
async def test_a_token_of_another_or_for_another_is_none(
    access: OidcAccess, issuer: Issuer, changes: dict[str, Any]
) -> None:
    assert not await is_accepted(access, issuer.token(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"azp": None, "aud": CLIENT_ID},
        {"azp": None, "aud": ["account", CLIENT_ID]},
        {"azp": CLIENT_ID, "aud": None},
        {"typ": None},
        {"iat": None},
        {"sub": "s" * 255},
        {"sub": "ä"},
        {"exp": 1e10},
        {"nonce": "n"},
    ],
    ids=str,
)
async def test_what_a_token_need_not_say(access: OidcAccess, issuer: Issuer, changes: dict[str, Any]) -> None:
    assert await is_accepted(access, issuer.token(**changes))


async def test_a_null_is_something_said(access: OidcAccess, issuer: Issuer) -> None:
    """The client is in `aud`, but the token has an `azp`, and it is not the client's."""
    for name in ("azp", "typ", "exp", "nbf", "iat"):
        assert not await is_accepted(access, issuer.signed({**issuer.claims(aud=CLIENT_ID), name: None}))


@pytest.mark.parametrize(
    ("claim", "offset_s", "is_good"),
    [
        ("exp", -59, True),
        ("exp", -60, False),
        ("exp", -61, False),
        ("nbf", 60, True),
        ("nbf", 61, False),
        ("iat", 60, True),
        ("iat", 61, False),
    ],
)
async def test_the_times_hold_to_the_minute(  # noqa: PLR0913, PLR0917 - a row of a table
    access: OidcAccess, issuer: Issuer, clock: FakeClock, claim: str, offset_s: int, is_good: bool
) -> None:
    now = int(clock.freeze().timestamp())
    assert await is_accepted(access, issuer.token(**{claim: now + offset_s})) is is_good


async def test_a_token_ends_while_the_process_runs(access: OidcAccess, issuer: Issuer, clock: FakeClock) -> None:
    token = issuer.token()
    assert await is_accepted(access, token)
    clock.advance(seconds=301 + 60)
    assert not await is_accepted(access, token)


# How it is signed.


def signed_with_public_key(issuer: Issuer, secret: bytes) -> str:
    """HS256 under what everybody can read."""
    header = {"alg": "HS256", "typ": "JWT", "kid": issuer.keys[0].kid}
    text = unsigned(header, issuer.claims()).rpartition(".")[0]
    digest = hmac.new(secret, text.encode(), hashlib.sha256).digest()
    return text + "." + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def forgeries(issuer: Issuer) -> dict[str, str]:
    public = issuer.keys[0].private.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    good, claims = issuer.token(), issuer.claims()
    head, body, signature = good.split(".")
    foreign, weak = key("first", number=1), IssuerKey("first", "RS384", issuer.keys[0].private)
    return {
        "alg none": unsigned({"alg": "none", "kid": "first"}, claims),
        "alg None": unsigned({"alg": "None", "kid": "first"}, claims),
        "alg none, signed": unsigned({"alg": "none", "kid": "first"}, claims, b"x" * 256),
        "no alg": unsigned({"kid": "first"}, claims, b"x" * 256),
        "alg null": unsigned({"alg": None, "kid": "first"}, claims, b"x" * 256),
        "alg a list": unsigned({"alg": ["RS256"], "kid": "first"}, claims, b"x" * 256),
        "HS256 with the PEM": signed_with_public_key(issuer, pem),
        "HS256 with the DER": signed_with_public_key(
            issuer, public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        ),
        "HS256 with the modulus": signed_with_public_key(issuer, issuer.keys[0].jwk["n"].encode()),
        "HS256 with nothing": signed_with_public_key(issuer, b""),
        "an algorithm that is not on the list": issuer.signed(claims, by=weak),
        "another's key under our kid": issuer.token(by=foreign),
        "another's key under its own kid": issuer.token(by=key("theirs", number=1)),
        "an embedded key": issuer.signed(claims, by=foreign, jwk=foreign.jwk),
        "an address of keys": issuer.signed(claims, by=foreign, jku="https://evil.example/jwks"),
        "no kid": issuer.signed(claims, kid=None),
        "a critical extension": issuer.signed(claims, crit=["exp"], exp=1),
        "a detached payload": issuer.signed(claims, b64=False, crit=["b64"]),
        "an edited payload": f"{head}.{body[:-2]}AA.{signature}",
        "an edited header": unsigned({"alg": "RS256", "kid": "first", "x": 1}, {}).partition(".")[0]
        + f".{body}.{signature}",
        "no signature": f"{head}.{body}.",
        "half a signature": f"{head}.{body}.{signature[:170]}",
        "two parts": f"{head}.{body}",
        "four parts": good + ".x",
        "five parts": "a.b.c.d.e",
        "dots": "..",
        "text": "token",
        "a list for claims": issuer.signed(b"[]"),
        "broken claims": issuer.signed(b"{"),
        "a claim twice": issuer.signed(json.dumps(claims).encode()[:-1] + b', "sub": "mallory"}'),
        "claims without an end": issuer.signed(b'{"exp": Infinity}'),
        "beyond ASCII": good + "ä",
    }


async def test_a_forgery_is_no_token(access: OidcAccess, issuer: Issuer) -> None:
    accepted = {name for name, token in forgeries(issuer).items() if await is_accepted(access, token)}
    assert accepted == set()
    assert await is_accepted(access, issuer.token())


async def test_what_cannot_be_a_token_asks_the_issuer_nothing(access: OidcAccess, issuer: Issuer) -> None:
    every = forgeries(issuer)
    for name in every.keys() & {"alg none", "HS256 with the PEM", "no kid", "dots", "text", "five parts", "alg a list"}:
        assert not await is_accepted(access, every[name])
    assert not await is_accepted(access, issuer.token(padding="x" * 10 * 1024))
    assert issuer.asked == []


async def test_a_token_has_at_most_8_kib(access: OidcAccess, issuer: Issuer) -> None:
    def of(size: int) -> str:
        # Three bytes of claims are four characters: from a token that is too short by little to one that is not.
        padding = size * 3 // 4
        while len(token := issuer.token(padding="x" * padding)) > size:
            padding -= 1
        return token

    token = of(8192)
    assert len(token) > 8188
    assert await is_accepted(access, token)
    assert not await is_accepted(access, issuer.token(padding="x" * (8192 * 3 // 4)))


@pytest.mark.parametrize(
    ("alg", "used"),
    [("RS256", "PS256"), ("PS256", "RS256"), ("ES256", "EdDSA"), ("EdDSA", "ES256"), ("RS256", "ES256")],
)
async def test_a_key_is_used_with_its_own_algorithm_only(
    access: OidcAccess, issuer: Issuer, alg: str, used: str
) -> None:
    published = key("only", alg)
    issuer.keys = [published]
    same = {alg, used} == {"RS256", "PS256"}
    by = IssuerKey("only", used, published.private) if same else key("only", used)
    assert not await is_accepted(access, issuer.token(by=by))
    assert await is_accepted(access, issuer.token())


async def test_a_key_without_an_algorithm_is_used_as_its_type_allows(access: OidcAccess, issuer: Issuer) -> None:
    (only,) = issuer.keys
    issuer.jwks = {"keys": [{name: value for name, value in only.jwk.items() if name != "alg"}]}
    for alg in ("RS256", "PS256"):
        assert await is_accepted(access, issuer.token(by=IssuerKey("first", alg, only.private)))


# Which keys are used.


def test_keys_for_other_purposes_are_passed_over() -> None:
    good = key("good").jwk
    weak = rsa.generate_private_key(65537, 1024)  # noqa: S505 - what is refused
    passed_over: list[Any] = [
        {**good, "kid": "encryption", "use": "enc"},
        {**good, "kid": "operations", "key_ops": ["encrypt"]},
        {**good, "kid": "algorithm", "alg": "RS512"},
        {**good, "kid": "encrypting algorithm", "alg": "RSA-OAEP"},
        {**good, "kid": "hmac", "alg": "HS256"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "symmetric", "alg": "HS256", "use": "sig"},
        {**good, "kid": 7},
        {name: value for name, value in good.items() if name != "kid"},
        {**good, "kid": "no modulus", "n": ""},
        {**good, "kid": "broken modulus", "n": "!"},
        {**good, "kid": "broken exponent", "e": "AQ"},
        {**IssuerKey("weak", "RS256", weak).jwk},
        {**key("curve", "ES256").jwk, "crv": "P-384"},
        {**key("point", "ES256").jwk, "x": "AAAA"},
        {**key("okp", "EdDSA").jwk, "crv": "X25519"},
        {"kid": "nothing"},
        "text",
        None,
    ]
    assert set(verification_keys({"keys": [*passed_over, good]})) == {("good", "RS256")}


def test_a_key_that_says_no_purpose_may_sign() -> None:
    plain = {name: value for name, value in key("plain").jwk.items() if name != "use"}
    assert set(verification_keys({"keys": [plain]})) == {("plain", "RS256")}


@pytest.mark.parametrize("document", [{}, {"keys": None}, {"keys": {}}, {"keys": []}, {"keys": "x"}], ids=str)
def test_a_set_without_keys_has_none(document: dict[str, Any]) -> None:
    assert verification_keys(document) == {}


# When they are read.


async def test_keys_are_read_once_for_all_who_wait(access: OidcAccess, issuer: Issuer) -> None:
    token = issuer.token()
    assert all(await asyncio.gather(*(is_accepted(access, token) for _ in range(50))))
    assert issuer.asked == [DISCOVERY, JWKS]


async def test_a_caller_who_leaves_takes_nothing_from_the_others(access: OidcAccess, issuer: Issuer) -> None:
    token = issuer.token()
    leaving = asyncio.create_task(is_accepted(access, token))
    staying = asyncio.create_task(is_accepted(access, token))
    while not issuer.asked:  # noqa: ASYNC110 - the event happens in the server
        await asyncio.sleep(0)
    leaving.cancel()
    assert await staying
    assert issuer.readings_count == 1


async def test_a_new_key_is_found_at_once(access: OidcAccess, issuer: Issuer) -> None:
    old = issuer.token()
    assert await is_accepted(access, old)
    issuer.keys.append(key("second", number=1))
    new = issuer.token()
    assert all(await asyncio.gather(*(is_accepted(access, new) for _ in range(20))))
    assert issuer.readings_count == 2
    assert await is_accepted(access, old)


async def test_a_flood_of_forged_names_asks_once_in_ten_seconds(
    access: OidcAccess, issuer: Issuer, clock: FakeClock
) -> None:
    token = issuer.token()
    assert await is_accepted(access, token)
    for round_number in range(3):
        forged = [issuer.signed(issuer.claims(), kid=f"forged-{round_number}-{number}") for number in range(50)]
        assert not any(await asyncio.gather(*(is_accepted(access, one) for one in forged)))
        assert not any([await is_accepted(access, one) for one in forged[:5]])
        assert issuer.readings_count == 2 + round_number
        clock.advance(seconds=AGAIN_S - 1)
        assert not await is_accepted(access, forged[0])
        assert issuer.readings_count == 2 + round_number
        clock.advance(seconds=1)
    assert await is_accepted(access, token)


async def test_a_withdrawn_key_fails_once_the_set_is_read_again(
    access: OidcAccess, issuer: Issuer, clock: FakeClock
) -> None:
    token = issuer.token(exp=9e9)
    assert await is_accepted(access, token)
    issuer.keys = [key("second", number=1)]
    clock.advance(seconds=FRESH_S - 1)
    assert await is_accepted(access, token)
    clock.advance(seconds=1)
    assert not await is_accepted(access, token)
    assert issuer.readings_count == 3, "once for its age, once for the kid that is unknown now"


async def test_a_withdrawn_key_fails_when_another_token_had_the_set_read(access: OidcAccess, issuer: Issuer) -> None:
    old = issuer.token()
    assert await is_accepted(access, old)
    issuer.keys = [key("second", number=1)]
    assert await is_accepted(access, issuer.token())
    assert not await is_accepted(access, old)


# Its faults.


def key_set(*keys: Any) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


FAULTS: dict[str, Callable[[], Behaviour]] = {
    "silent": lambda: misbehaving.silent,
    "slow headers": lambda: misbehaving.slow_headers,
    "slow body": lambda: misbehaving.dripping,
    "without an end": lambda: misbehaving.endless,
    "10 MB": lambda: answer(b'{"keys": [' + b" " * 10_000_000 + key_set(key("first").jwk)[10:]),
    "empty": lambda: answer(b""),
    "malformed": lambda: answer(b'{"keys": ['),
    "not an object": lambda: answer(b"[]"),
    "an empty object": lambda: answer(b"{}"),
    "an empty set": lambda: answer(key_set()),
    "a broken set": lambda: answer(key_set({"kty": "RSA", "kid": "first"})),
    "keys for encryption": lambda: answer(key_set({**key("first").jwk, "use": "enc"})),
    "error": lambda: answer(key_set(key("first").jwk), status="500 Internal Server Error"),
    "elsewhere": lambda: misbehaving.raw(b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n"),
    "garbage": lambda: misbehaving.raw(b"\0\1\2\r\n\r\n"),
    "hangs up": lambda: misbehaving.raw(b""),
    "compressed": lambda: misbehaving.raw(
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\n\x1f\x8b\x08"
    ),
}


@pytest.mark.parametrize("path", [DISCOVERY, JWKS], ids=["discovery", "jwks"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_the_last_good_set_stays_whatever_the_issuer_answers(
    access: OidcAccess, issuer: Issuer, clock: FakeClock, fault: str, path: str
) -> None:
    token = issuer.token(exp=9e9)
    assert await is_accepted(access, token)
    issuer.behaviour[path] = FAULTS[fault]()
    unknown = issuer.token(by=key("second", number=1), exp=9e9)
    with impatient(access):
        assert not await is_accepted(access, unknown)
        for _ in range(2):
            clock.advance(seconds=FRESH_S + 1)
            assert await is_accepted(access, token)
        if access._keys._reading is not None:
            await access._keys._reading
    issuer.behaviour.clear()
    issuer.keys = [key("second", number=1)]
    clock.advance(seconds=AGAIN_S + 1)
    assert await is_accepted(access, unknown), "it is asked again"
    assert not await is_accepted(access, token)


@pytest.mark.parametrize("path", [DISCOVERY, JWKS], ids=["discovery", "jwks"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_without_any_set_nothing_can_be_judged(
    access: OidcAccess, issuer: Issuer, clock: FakeClock, fault: str, path: str
) -> None:
    issuer.behaviour[path] = FAULTS[fault]()
    for _ in range(2):
        with impatient(access), pytest.raises(IdentityProviderUnavailable):
            await access.user_of(issuer.token())
    issuer.behaviour.clear()
    clock.advance(seconds=1)
    assert await is_accepted(access, issuer.token())


async def test_an_issuer_that_is_down_is_missed_only_without_keys(
    access: OidcAccess, issuer: Issuer, clock: FakeClock
) -> None:
    token = issuer.token(exp=9e9)
    async with issuer.down():
        with pytest.raises(IdentityProviderUnavailable):
            await access.user_of(token)
    clock.advance(seconds=1)
    assert await is_accepted(access, token)
    async with issuer.down():
        clock.advance(hours=1)
        assert await is_accepted(access, token)
        assert not await is_accepted(access, issuer.token(by=key("second", number=1)))


async def test_nobody_waits_twice_for_an_issuer_that_is_slow(
    access: OidcAccess, issuer: Issuer, clock: FakeClock
) -> None:
    token = issuer.token(exp=9e9)
    assert await is_accepted(access, token)
    issuer.behaviour[JWKS] = misbehaving.silent
    clock.advance(seconds=FRESH_S)
    with impatient(access):
        assert await is_accepted(access, token)  # This one waited, to the deadline.
    clock.advance(seconds=AGAIN_S)
    assert await is_accepted(access, token)
    assert access._keys._reading is not None, "it is asked again all the same, and that is not over yet"


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://other.example"},
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": 7},
        {"jwks_uri": "http://192.0.2.1/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "http://127.0.0.1:99999/"},
        {"jwks_uri": "https://\0"},
    ],
    ids=str,
)
async def test_a_discovery_document_of_another_is_none(
    access: OidcAccess, issuer: Issuer, discovery: dict[str, Any]
) -> None:
    issuer.discovery = discovery
    with pytest.raises(IdentityProviderUnavailable):
        await access.user_of(issuer.token())
    assert issuer.readings_count == 0


async def test_an_issuer_with_a_slash_at_its_end(issuer: Issuer, clock: FakeClock) -> None:
    """Tokens name it so; its discovery document stands below it all the same."""
    named = issuer.url + "/"
    issuer.discovery = {"issuer": named}
    access = OidcAccess(named, CLIENT_ID, clock)
    assert await is_accepted(access, issuer.token(iss=named))
    assert not await is_accepted(access, issuer.token())
    await access.aclose()


async def test_it_stops_while_it_reads(issuer: Issuer, clock: FakeClock) -> None:
    issuer.behaviour[DISCOVERY] = misbehaving.silent
    access = OidcAccess(issuer.url, CLIENT_ID, clock, timeout_s=60)
    waiting = asyncio.create_task(access.user_of(issuer.token()))
    while not issuer.asked:  # noqa: ASYNC110 - the event happens in the server
        await asyncio.sleep(0)
    await access.aclose()
    with pytest.raises((asyncio.CancelledError, IdentityProviderUnavailable)):
        await waiting


# In the whole Core.


@pytest.fixture
async def people(database_url: Secret, issuer: Issuer, clock: FakeClock) -> AsyncIterator[Api]:
    """A Core whose people sign in with the issuer."""
    async with running_core(
        core_settings(database_url, oidc_issuer=issuer.url, oidc_client_id=CLIENT_ID), clock
    ) as api:
        yield api


async def test_a_person_signs_in_and_owns_what_they_make(people: Api, issuer: Issuer) -> None:
    alice, bob = people.other(token=issuer.token("alice")), people.other(token=issuer.token("bob"))
    organization_id = await alice.given_organization()
    (found,) = (await alice.get("/v1/organizations")).json["data"]
    assert (found["id"], found["role"]) == (organization_id, "owner")
    assert (await bob.get("/v1/organizations")).json["data"] == []


async def test_the_operator_token_is_nothing_where_people_sign_in(people: Api) -> None:
    answer = await people.other(token=OPERATOR_TOKEN).get("/v1/organizations")
    assert (answer.status, answer.code) == (401, "unauthenticated")


async def test_a_token_of_10_kib_and_two_headers_are_no_credential(people: Api, issuer: Issuer) -> None:
    nobody, token = people.other(token=None), issuer.token()
    long = issuer.token(padding="x" * 10 * 1024)
    for headers in (
        [("Authorization", f"Bearer {long}")],
        [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")],
        [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {OPERATOR_TOKEN}")],
        [("Authorization", f"Bearer {token}, Bearer {token}")],
    ):
        answer = await nobody.get("/v1/organizations", headers=headers)
        assert (answer.status, answer.code) == (401, "unauthenticated")
        assert token not in answer.body.decode()
    assert (await nobody.get("/v1/organizations", headers={"Authorization": f"Bearer {token}"})).status == 200


async def test_core_says_which_token_it_cannot_take(people: Api, issuer: Issuer) -> None:
    unverified = await people.other(token=issuer.token(email_verified=False)).get("/v1/organizations")
    assert (unverified.status, unverified.code) == (403, "email_not_verified")
    weak = await people.other(token=issuer.token(acr="1")).post("/v1/organizations", json={"name": "x"})
    assert (weak.status, weak.code) == (403, "mfa_required")


async def test_core_is_ready_without_its_issuer(people: Api, issuer: Issuer) -> None:
    async with issuer.down():
        answer = await people.other(token=issuer.token()).get("/v1/organizations")
        assert (answer.status, answer.code) == (503, "identity_provider_unavailable")
        ready = await people.get("/readyz")
        assert "issuer" not in ready.body.decode()
        assert set(ready.json.get("unavailable", ["audio"])) == {"audio"}, "this Core has no audio, and needs no issuer"


async def test_no_token_reaches_the_log(people: Api, issuer: Issuer, capfd: pytest.CaptureFixture[str]) -> None:
    good = issuer.token()
    for token in (good, *forgeries(issuer).values()):
        if token.isascii():
            await people.other(token=token).get("/v1/organizations")
    seen = "".join(capfd.readouterr())
    assert good.split(".")[2] not in seen
    assert good.split(".")[1] not in seen


# Its settings.


@pytest.mark.parametrize(
    "changes",
    [
        {"oidc_issuer": "https://id.example/realms/x"},
        {"oidc_client_id": "console"},
        {"oidc_issuer": "http://id.example/realms/x", "oidc_client_id": "console"},
        {"oidc_issuer": "https://id.example/?a=b", "oidc_client_id": "console"},
        {"oidc_issuer": "https://id.example/#a", "oidc_client_id": "console"},
        {"oidc_issuer": "https://me:pw@id.example/", "oidc_client_id": "console"},
        {"oidc_issuer": "id.example", "oidc_client_id": "console"},
        {"oidc_issuer": "https://id.example:0/", "oidc_client_id": "console"},
        {"oidc_issuer": "https://id.example", "oidc_client_id": "c" * 256},
    ],
    ids=str,
)
def test_an_issuer_that_cannot_be_trusted_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SettingsInvalid, match="SOUNDMARK_OIDC_"):
        core_settings(Secret("postgresql://a@b/c"), **changes)


def test_an_issuer_is_kept_to_the_letter() -> None:
    settings = core_settings(
        Secret("postgresql://a@b/c"), oidc_issuer="https://id.example/", oidc_client_id="the console"
    )
    assert (settings.oidc_issuer, settings.oidc_client_id) == ("https://id.example/", "the console")


@pytest.mark.parametrize(
    ("url", "is_guarded"),
    [
        ("https://id.example", True),
        ("https://id.example:8443/realms/x", True),
        ("http://127.0.0.1:8080/realms/x", True),
        ("http://127.9.9.9/", True),
        ("http://[::1]:8080/", True),
        ("http://localhost:8080/", True),
        ("http://localhost.example/", False),
        ("http://127.0.0.1.example/", False),
        ("http://10.0.0.1/", False),
        ("ftp://127.0.0.1/", False),
        ("https://", False),
        ("https:///path", False),
        ("https://a@b", False),
        ("https://id.example:x", False),
        ("https://id.example/ä", False),
        ("https://id.example/ x", False),
        ("https://id.example/\n", False),
        ("https://[::1", False),
        ("", False),
    ],
)
def test_what_cannot_be_changed_on_its_way(url: str, is_guarded: bool) -> None:
    assert is_guarded_url(url) is is_guarded
