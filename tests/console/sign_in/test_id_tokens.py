"""ID tokens: only one that the issuer made for this login of this client signs anybody in."""

import json
from typing import Any

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.console.login import Desk
from support.identity.oidc_issuer import CLIENT_ID, OidcIssuer, encode_part, make_issuer_key, make_unsigned_token


async def assert_refused(visitors: ConsoleClient, page: PageAnswer) -> None:
    assert (page.status, page.trouble) == (403, "sign_in.answer_refused")
    assert (await visitors.get("/organizations")).location.startswith("/sign-in"), "nobody is signed in"


async def test_claims_of_another_login_are_refused(
    visitors: ConsoleClient, desk: Desk, subtests: pytest.Subtests
) -> None:
    for claims in [
        {"iss": "https://other.example"},
        {"iss": None},
        {"iss": ["x"]},
        {"aud": "other"},
        {"aud": None},
        {"aud": []},
        {"aud": {"console": 1}},
        {"aud": [CLIENT_ID, "other"], "azp": None},
        {"azp": "other"},
        {"azp": [CLIENT_ID]},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": True},
        {"exp": 1},
        {"iat": None},
        {"iat": 4_000_000_000},
        {"nbf": 4_000_000_000},
        {"nonce": None},
        {"nonce": "of-another-login"},
        {"nonce": ["x"]},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "a" * 256},
        {"sub": "alice\n"},
        {"amr": "otp"},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
        {"at_hash": 7},
        {"at_hash": ["é"]},
        {"auth_time": "yesterday"},
    ]:
        with subtests.test(claims=claims):
            desk.identity = claims

            await assert_refused(visitors, await desk.sign_in(visitors))


@pytest.mark.parametrize(
    "claims", [{"aud": [CLIENT_ID]}, {"aud": [CLIENT_ID, "other"]}, {"azp": None}, {"email": None}]
)
async def test_every_spelling_of_our_client_is_taken(
    visitors: ConsoleClient, desk: Desk, claims: dict[str, Any]
) -> None:
    desk.identity = claims

    assert (await desk.sign_in(visitors)).location == "/organizations"


@pytest.mark.parametrize(("offset_s", "is_good"), [(-59, True), (-61, False)])
async def test_the_times_allow_a_minute_of_clock_difference(
    visitors: ConsoleClient, desk: Desk, offset_s: int, *, is_good: bool
) -> None:
    desk.identity = {"exp": int(desk.issuer.clock.freeze().timestamp()) + offset_s}
    answer = await desk.sign_in(visitors)
    desk.issuer.clock.reset()

    assert (answer.status == 303) is is_good


@pytest.mark.parametrize("alg", ["RS256", "PS256", "ES256", "EdDSA"])
async def test_every_algorithm_of_the_list_is_accepted(visitors: ConsoleClient, desk: Desk, alg: str) -> None:
    desk.issuer.keys = [make_issuer_key(f"console-{alg}", alg)]

    assert (await desk.sign_in(visitors)).location == "/organizations"


async def test_a_new_key_is_found_at_once(visitors: ConsoleClient, desk: Desk) -> None:
    await desk.sign_in(visitors)
    desk.issuer.keys.append(make_issuer_key("console-second", number=1))

    assert (await desk.sign_in(visitors)).location == "/organizations"


async def test_a_forged_signature_is_refused(visitors: ConsoleClient, desk: Desk) -> None:
    issuer = desk.issuer
    asked = await desk.begin(visitors)
    claims = {**issuer.claims(aud=CLIENT_ID), "nonce": asked["nonce"]}
    desk.answer = {"id_token": issuer.signed(claims, by=make_issuer_key("first", number=1))}
    await assert_refused(visitors, await desk.come_back(visitors, asked["state"]))

    asked = await desk.begin(visitors)
    header, _, signature = issuer.id_token("alice", nonce=asked["nonce"]).split(".")
    payload = encode_part(json.dumps({**claims, "nonce": asked["nonce"], "sub": "root"}).encode())
    desk.answer = {"id_token": f"{header}.{payload}.{signature}"}
    await assert_refused(visitors, await desk.come_back(visitors, asked["state"]))


@pytest.mark.parametrize("header", [{"alg": "none"}, {"alg": "HS256", "kid": "first"}, {"alg": "none", "kid": "first"}])
async def test_an_algorithm_without_a_key_of_the_issuer_is_refused(
    visitors: ConsoleClient, desk: Desk, header: dict[str, str]
) -> None:
    asked = await desk.begin(visitors)
    claims = {**desk.issuer.claims(aud=CLIENT_ID), "nonce": asked["nonce"]}
    desk.answer = {"id_token": make_unsigned_token(header, claims, b"x" * 32)}

    await assert_refused(visitors, await desk.come_back(visitors, asked["state"]))


@pytest.mark.parametrize("id_token", [None, "", 7, "a.b.c", "x" * 20_000], ids=lambda value: str(value)[:10])
async def test_an_answer_without_an_id_token_is_refused(visitors: ConsoleClient, desk: Desk, id_token: Any) -> None:
    desk.answer = {"id_token": id_token}

    await assert_refused(visitors, await desk.sign_in(visitors))


async def test_an_access_token_is_no_id_token(visitors: ConsoleClient, desk: Desk) -> None:
    issuer: OidcIssuer = desk.issuer
    asked = await desk.begin(visitors)
    desk.answer = {"id_token": issuer.token("alice", nonce=asked["nonce"], aud="account")}

    await assert_refused(visitors, await desk.come_back(visitors, asked["state"]))
