"""People who sign in to a complete Core, and its settings for that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
import structlog
from support.api.core_client import Api
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.identity.oidc_issuer import CLIENT_ID, OidcIssuer, make_issuer_key
from support.identity.token_forgeries import make_forgeries
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import SettingsInvalid


@pytest.fixture
async def people(database_url: Secret, issuer: OidcIssuer, clock: FakeClock) -> AsyncIterator[Api]:
    """A Core whose people sign in with the issuer."""
    async with signing_in(database_url, issuer, clock) as api:
        yield api


def signing_in(database_url: Secret, issuer: OidcIssuer, clock: FakeClock) -> AbstractAsyncContextManager[Api]:
    settings = core_settings(database_url, oidc_issuer=issuer.url, oidc_client_id=CLIENT_ID)
    return running_core(settings, clock)


async def test_a_person_signs_in_and_owns_what_they_make(people: Api, issuer: OidcIssuer) -> None:
    alice, bob = people.other(token=issuer.token("alice")), people.other(token=issuer.token("bob"))
    organization_id = await alice.make_organization()
    (found,) = (await alice.get("/v1/organizations")).json["data"]
    assert (found["id"], found["role"]) == (organization_id, "owner")
    assert (await bob.get("/v1/organizations")).json["data"] == []


async def test_the_operator_token_is_refused_where_people_sign_in(people: Api) -> None:
    answer = await people.other(token=OPERATOR_TOKEN).get("/v1/organizations")
    assert (answer.status, answer.code) == (401, "unauthenticated")


async def test_a_token_of_10_kib_and_two_headers_are_refused(people: Api, issuer: OidcIssuer) -> None:
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


async def test_core_says_why_it_refuses_a_token(people: Api, issuer: OidcIssuer) -> None:
    unverified = await people.other(token=issuer.token(email_verified=False)).get("/v1/organizations")
    assert (unverified.status, unverified.code) == (403, "email_not_verified")
    weak = await people.other(token=issuer.token(acr="1")).post("/v1/organizations", json={"name": "x"})
    assert (weak.status, weak.code) == (403, "mfa_required")


async def test_core_starts_and_is_ready_without_its_issuer(
    database_url: Secret, issuer: OidcIssuer, clock: FakeClock
) -> None:
    async with issuer.down(), signing_in(database_url, issuer, clock) as people:
        answer = await people.other(token=issuer.token()).get("/v1/organizations")
        assert (answer.status, answer.code) == (503, "identity_provider_unavailable")
        ready = await people.get("/readyz")
        assert "issuer" not in ready.body.decode()
        # This Core has no other components and does not need its issuer.
        assert (ready.json["unavailable"], set(ready.json["degraded"])) == ([], {"audience", "audio"})


async def test_core_starts_with_another_issuer_and_says_so(
    database_url: Secret, issuer: OidcIssuer, clock: FakeClock
) -> None:
    issuer.discovery = {"issuer": "https://other.example/realms/x"}
    with structlog.testing.capture_logs() as events:
        async with signing_in(database_url, issuer, clock):
            while not (warnings := [event for event in events if event["event"] == "issuer_keys_not_read"]):  # noqa: ASYNC110 - the event happens beside
                await asyncio.sleep(0)
    assert (warnings[0]["configured"], warnings[0]["named"]) == (issuer.url, "https://other.example/realms/x")


async def test_an_unknown_key_is_a_503_while_the_issuer_is_down(people: Api, issuer: OidcIssuer) -> None:
    assert (await people.other(token=issuer.token()).get("/v1/organizations")).status == 200
    async with issuer.down():
        answer = await people.other(token=issuer.token(by=make_issuer_key("second", number=1))).get("/v1/organizations")
        assert (answer.status, answer.code) == (503, "identity_provider_unavailable")
        assert (await people.other(token=issuer.token()).get("/v1/organizations")).status == 200


async def test_a_forgery_is_refused_and_no_token_reaches_the_log(
    people: Api, issuer: OidcIssuer, capfd: pytest.CaptureFixture[str]
) -> None:
    good = issuer.token()
    assert (await people.other(token=good).get("/v1/organizations")).status == 200
    for name, token in make_forgeries(issuer).items():
        # HTTP takes white space around a credential away.
        if token.isascii() and token.isprintable() and token == token.strip():
            answer = await people.other(token=token).get("/v1/organizations")
            assert answer.status == 401, name
            assert answer.code == "unauthenticated", name
    seen = "".join(capfd.readouterr())
    assert good.split(".")[2] not in seen
    assert good.split(".")[1] not in seen


# The issuer's settings.


def test_an_issuer_that_cannot_be_trusted_is_refused(subtests: pytest.Subtests) -> None:
    for changes in [
        {"oidc_issuer": "https://id.example/realms/x"},
        {"oidc_client_id": "console"},
        {"oidc_issuer": "http://id.example/realms/x", "oidc_client_id": "console"},
        {"oidc_issuer": "https://id.example/?a=b", "oidc_client_id": "console"},
        {"oidc_issuer": "https://id.example/#a", "oidc_client_id": "console"},
        {"oidc_issuer": "https://me:pw@id.example/", "oidc_client_id": "console"},
        {"oidc_issuer": "id.example", "oidc_client_id": "console"},
        {"oidc_issuer": "https://id.example:0/", "oidc_client_id": "console"},
        {"oidc_issuer": "https://id.example", "oidc_client_id": "c" * 256},
    ]:
        with subtests.test(changes=changes), pytest.raises(SettingsInvalid, match="SOUNDMARK_OIDC_"):
            core_settings(Secret("postgresql://a@b/c"), **changes)


def test_an_issuer_is_kept_as_it_is_spelled() -> None:
    settings = core_settings(
        Secret("postgresql://a@b/c"), oidc_issuer="https://id.example/", oidc_client_id="the console"
    )
    assert (settings.oidc_issuer, settings.oidc_client_id) == ("https://id.example/", "the console")
