"""The reporting tokens of the reference backend: which receivers it admits, and when it reads the secret."""

import base64
import json
from collections.abc import Callable
from datetime import timedelta

import jwt
import pytest
from soundmark_sdk.publisher import Consent, ReportingTokens, SessionRefused

from .issuer import INTEGRATION_ID, NOW
from .measurements import CONSENT
from .reference_backend import KEY, OTHER_INTEGRATION, SECONDS, World, make_claims, make_unsigned_token, sign_token
from .stand_ins import FakeClock

REFUSED: dict[str, Callable[[], str]] = {
    "nothing": lambda: "",
    "no token": lambda: "not-a-token",
    "text of another script": lambda: "é",
    "too long": lambda: sign_token(more="m" * 8192),
    "another key": lambda: sign_token(b"k" * 32),
    "another algorithm of the same key": lambda: sign_token(
        algorithm="HS512", key=KEY + b"and as long as HS512 wants it"
    ),
    "no signature": make_unsigned_token,
    "a signature cut off": lambda: sign_token()[:-4],
    "claims of another token": lambda: ".".join(
        (sign_token().split(".")[0], sign_token(exp=SECONDS + 9).split(".")[1], "x")
    ),
    "no iat": lambda: sign_token(iat=...),
    "no exp": lambda: sign_token(exp=...),
    "no consent": lambda: sign_token(svc_audience_consent=...),
    "consent is false": lambda: sign_token(svc_audience_consent=False),
    "consent is 1": lambda: sign_token(svc_audience_consent=1),
    "consent is text": lambda: sign_token(svc_audience_consent="true"),
    "no integration": lambda: sign_token(svc_audience_integration_id=...),
    "another integration": lambda: sign_token(svc_audience_integration_id=OTHER_INTEGRATION),
    "integrations, ours among them": lambda: sign_token(svc_audience_integration_id=[INTEGRATION_ID]),
    "lives too long": lambda: sign_token(exp=SECONDS + 301),
    "lives for no time": lambda: sign_token(exp=SECONDS),
    "ends before it begins": lambda: sign_token(exp=SECONDS - 10),
    "begins later": lambda: sign_token(iat=SECONDS + 12, exp=SECONDS + 200),
    "has ended": lambda: sign_token(iat=SECONDS - 300, exp=SECONDS),
    "not before later": lambda: sign_token(nbf=SECONDS + 60),
    "exp is text": lambda: sign_token(exp=str(SECONDS + 60)),
    "exp is true": lambda: sign_token(exp=True),
    "iat is a fraction": lambda: sign_token(iat=SECONDS + 0.5),
    "exp is beyond every clock": lambda: sign_token(exp=10**400),
    "for another audience": lambda: sign_token(aud="https://elsewhere.example.org"),
}


async def test_a_refused_token_reads_no_secret_and_forwards_nothing(
    world: World, body: bytes, subtests: pytest.Subtests
) -> None:
    for name, make_token in REFUSED.items():
        with subtests.test(name):
            token = make_token()
            headers = {"Authorization": f"Bearer {token}".encode()}
            answer = await world.post(body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert (world.secret.count, world.events.bodies) == (0, [])
            assert not token or token not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("authorization", "Basic eA==")],
        [("authorization", "Bearer {}"), ("authorization", "Bearer {}")],
        [("authorization", "{}")],
        [("cookie", "token={}")],
    ],
    ids=str,
)
async def test_a_token_is_accepted_in_one_header_only(
    world: World, body: bytes, headers: list[tuple[str, str]]
) -> None:
    token = world.tokens.issue(CONSENT)
    sent = [("content-type", "application/json"), *((name, value.format(token)) for name, value in headers)]
    answer = await world.client.post("/v1/events", content=body, headers=sent)
    assert (answer.status_code, world.secret.count) == (401, 0)


async def test_a_reporting_token_lives_for_at_most_five_minutes(world: World, body: bytes, clock: FakeClock) -> None:
    token = world.tokens.issue(CONSENT)
    clock.advance(299)
    assert (await world.post(body, token)).status_code == 201
    clock.advance(1)
    assert (await world.post(body, token)).status_code == 401


async def test_the_clock_of_another_machine_may_be_slightly_ahead(world: World, body: bytes) -> None:
    assert (await world.post(body, sign_token(iat=SECONDS + 10, exp=SECONDS + 100))).status_code == 201


async def test_other_claims_are_ignored(world: World, body: bytes) -> None:
    assert (await world.post(body, sign_token(iss="https://id.example.org", jti="1", nbf=SECONDS))).status_code == 201


def test_a_reporting_token_names_nobody(clock: FakeClock) -> None:
    token = ReportingTokens(KEY, INTEGRATION_ID, clock=clock).issue(CONSENT, lifetime=timedelta(seconds=60))
    assert json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "==")) == make_claims(exp=SECONDS + 60)
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}


def test_a_token_is_issued_for_a_consent_that_covers_it(clock: FakeClock) -> None:
    tokens = ReportingTokens(KEY, INTEGRATION_ID, clock=clock)
    for consent in (Consent(OTHER_INTEGRATION, NOW), Consent(INTEGRATION_ID, NOW + timedelta(seconds=1))):
        with pytest.raises(ValueError, match="does not cover"):
            tokens.issue(consent)
    for lifetime_s in (0, 0.5, -1, 300.5, 301):
        with pytest.raises(ValueError, match="5 minutes"):
            tokens.issue(CONSENT, lifetime=timedelta(seconds=lifetime_s))


def test_a_short_key_or_a_malformed_integration_id_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        ReportingTokens(b"k" * 31, INTEGRATION_ID)
    with pytest.raises(ValueError, match="integration"):
        ReportingTokens(KEY, "int_short")
    assert KEY.decode() not in repr(ReportingTokens(KEY, INTEGRATION_ID))


@pytest.mark.parametrize(
    ("token", "refusal"),
    [
        ("nothing", "malformed"),
        ("has ended", "expired"),
        ("consent is 1", "consent_missing"),
        ("another integration", "other_integration"),
    ],
)
def test_the_publisher_can_tell_refusals_apart(clock: FakeClock, token: str, refusal: str) -> None:
    with pytest.raises(SessionRefused) as failure:
        ReportingTokens(KEY, INTEGRATION_ID, clock=clock).check(REFUSED[token]())
    assert failure.value.refusal == refusal
