"""Faults of the identity provider: a page says so, nobody is signed out, and nothing hangs."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog
from console.conftest import console_settings, running_console
from support.console.client import ConsoleClient
from support.console.login import Desk
from support.identity.oidc_issuer import CLIENT_ID, DISCOVERY, JWKS, TOKEN
from support.outside import misbehaving_server
from support.outside.misbehaving_server import Behaviour, answer
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People

from soundmark.console.sign_in import oidc_provider

FAULTS: dict[str, Behaviour] = {
    "silent": misbehaving_server.silent,
    "dripping": misbehaving_server.dripping,
    "endless": misbehaving_server.endless,
    "an error": answer(b"{}", status="500 Internal Server Error"),
    "too busy": answer(b'{"error":"slow_down"}', status="429 Too Many Requests"),
    "a page": answer(b"<html>", media_type="text/html"),
    "a list": answer(b"[]"),
    "a redirect": answer(b"", status="302 Found\r\nlocation: http://127.0.0.1:1/"),
    "an unknown client": answer(b'{"error":"invalid_client"}', status="401 Unauthorized"),
    "an error that is no text": answer(b'{"error":{"a":"\\n"}}', status="400 Bad Request"),
}


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider has half a second to answer."""
    monkeypatch.setattr(oidc_provider, "_TIMEOUT_S", 0.5)


@pytest.fixture
async def fresh(people: People, desk: Desk, clock: FakeClock, impatience: None) -> AsyncIterator[ConsoleClient]:  # noqa: ARG001 - the deadline is short, and the issuer well
    """A browser at a console that has read nothing of the issuer yet."""
    issuer = {"oidc_issuer": people.issuer.url, "oidc_client_id": CLIENT_ID}
    async with running_console(console_settings(**issuer), people.api, clock) as client:
        yield client


@pytest.mark.parametrize("path", [DISCOVERY, JWKS])
@pytest.mark.parametrize("fault", ["silent", "dripping", "endless", "an error", "a page", "a list", "a redirect"])
async def test_an_issuer_that_fails_leads_to_a_page(fresh: ConsoleClient, desk: Desk, fault: str, path: str) -> None:
    desk.issuer.behaviour[path] = FAULTS[fault]
    async with asyncio.timeout(10):
        page = await fresh.get("/sign-in?return_to=/organizations")

    assert (page.status, page.trouble) == (503, "identity_provider_unavailable")
    assert page.find(".//a[@class='button']").get("href") == "/sign-in?return_to=/organizations"


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_token_endpoint_that_fails_leads_to_a_page(visitors: ConsoleClient, desk: Desk, fault: str) -> None:
    asked = await desk.begin(visitors)
    desk.issuer.behaviour[TOKEN] = FAULTS[fault]
    async with asyncio.timeout(10):
        page = await desk.come_back(visitors, asked["state"])

    assert (page.status, page.trouble) == (503, "identity_provider_unavailable")


@pytest.mark.parametrize(
    "members",
    [
        {"access_token": None},
        {"access_token": 7},
        {"access_token": ""},
        {"access_token": "a b"},
        {"access_token": "a\r\nb"},
        {"access_token": "é"},
        {"access_token": "a" * (8 * 1024 + 1)},
        {"refresh_token": 7},
        {"refresh_token": "a" * (8 * 1024 + 1)},
        {"token_type": None},
        {"token_type": "mac"},
        {"expires_in": "300"},
        {"expires_in": 0},
        {"expires_in": True},
    ],
    ids=lambda value: str(value)[:40],
)
async def test_an_answer_with_unusable_tokens_is_a_page(
    visitors: ConsoleClient, desk: Desk, members: dict[str, Any]
) -> None:
    desk.answer = members
    page = await desk.sign_in(visitors)

    assert (page.status, page.trouble) == (503, "identity_provider_unavailable")


@pytest.mark.parametrize("url", ["http://evil.example/auth", "javascript:alert(1)", 7, None])
@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "end_session_endpoint"])
async def test_an_endpoint_without_a_secure_address_is_not_used(
    fresh: ConsoleClient, desk: Desk, name: str, url: Any
) -> None:
    desk.issuer.discovery = {name: url}
    if name == "authorization_endpoint":
        assert (await fresh.get("/sign-in")).status == 503
    elif name == "token_endpoint":
        assert (await desk.sign_in(fresh)).status == 503
    else:
        await desk.sign_in(fresh)
        page = await fresh.get("/organizations")
        answer = await fresh.submit("/sign-out", {"csrf_token": page.value("csrf_token")})
        assert answer.location == "/sign-in/signed-out", "the person is signed out here all the same"


async def test_a_provider_that_is_down_signs_nobody_out(person: ConsoleClient, desk: Desk, clock: FakeClock) -> None:
    clock.advance(seconds=280)
    desk.issuer.behaviour[TOKEN] = FAULTS["an error"]
    assert (await person.get("/organizations")).status == 200, "the access token is still valid"

    clock.advance(seconds=30)
    page = await person.get("/organizations")
    assert (page.status, page.trouble) == (503, "identity_provider_unavailable")

    desk.issuer.behaviour.clear()
    assert (await person.get("/organizations")).status == 200


async def test_a_form_is_kept_while_the_provider_is_down(person: ConsoleClient, desk: Desk, clock: FakeClock) -> None:
    token = (await person.get("/organizations")).value("csrf_token")
    clock.advance(seconds=310)
    desk.issuer.behaviour[TOKEN] = FAULTS["an error"]
    page = await person.submit("/organizations", {"name": "Radio <One>", "csrf_token": token})

    assert page.status == 503
    assert page.value("name") == "Radio <One>"


async def test_the_log_says_what_the_provider_answered_and_no_secret(visitors: ConsoleClient, desk: Desk) -> None:
    asked = await desk.begin(visitors)
    desk.issuer.behaviour[TOKEN] = FAULTS["an unknown client"]
    with structlog.testing.capture_logs() as events:
        await desk.come_back(visitors, asked["state"], code="the-code-of-this-login")

    assert [event for event in events if event["log_level"] == "warning"] == [
        {
            "event": "identity_provider_unavailable",
            "log_level": "warning",
            "reason": "token_endpoint",
            "status": 401,
            "error": "invalid_client",
        }
    ]
    assert "the-code-of-this-login" not in str(events)


async def test_a_client_secret_is_sent_to_the_token_endpoint_alone(
    people: People, desk: Desk, clock: FakeClock
) -> None:
    issuer = {"oidc_issuer": people.issuer.url, "oidc_client_id": CLIENT_ID}
    secret = "a-secret:with%and+of-the-tests"
    async with running_console(console_settings(**issuer, oidc_client_secret=secret), people.api, clock) as browser:
        answer = await desk.sign_in(browser)

    assert answer.location == "/organizations"
    sent = desk.issuer.token_requests[0]
    # RFC 6749, section 2.3.1: both parts form-encoded, then joined by a colon, in base64.
    assert sent["authorization"] == "Basic Y29uc29sZTphLXNlY3JldCUzQXdpdGglMjVhbmQlMkJvZi10aGUtdGVzdHM="
    assert "client_secret" not in sent
