"""Signing out: here and at the identity provider, without a name in a URL."""

import asyncio

import pytest
import structlog
from console.conftest import console_settings, running_console
from support.console.client import ConsoleClient
from support.console.login import Desk, read_query
from support.identity.oidc_issuer import CLIENT_ID, REVOCATION, TOKEN
from support.outside import misbehaving_server
from support.outside.misbehaving_server import Behaviour, answer
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People

from soundmark.console.session import LIFETIME


async def test_a_form_that_was_open_when_the_person_signed_out_says_that_the_session_has_ended(
    person: ConsoleClient,
) -> None:
    token = (await person.get("/organizations")).value("csrf_token")
    await person.submit("/sign-out", {"csrf_token": token})

    page = await person.submit("/organizations", {"name": "Radio", "csrf_token": token})

    assert (page.status, page.trouble) == (401, "sign_in.signed_out")


async def test_a_person_is_signed_out_here_and_at_the_provider(person: ConsoleClient, desk: Desk) -> None:
    token = (await person.get("/organizations")).value("csrf_token")
    left = await person.submit("/sign-out", {"csrf_token": token})

    assert left.location.startswith(f"{desk.issuer.url}/logout?")
    asked = read_query(left.location)
    assert asked.pop("ui_locales") == "en"
    assert asked == {
        "client_id": CLIENT_ID,
        "post_logout_redirect_uri": "http://127.0.0.1:8083/sign-in/signed-out",
    }
    assert "alice" not in left.location
    assert not [name for name in person.cookies if "session" in name]
    page = await person.get("/sign-in/signed-out")
    assert page.status == 200
    assert page.find(".//a[@class='button']").get("href") == "/sign-in", "nobody is signed in again by themselves"


async def test_a_provider_without_such_a_page_ends_the_session_here(person: ConsoleClient, desk: Desk) -> None:
    desk.issuer.discovery = {"end_session_endpoint": None}
    person.console.sign_in.provider._keys._metadata = {}  # type: ignore[union-attr]  # as if it were read like that
    token = (await person.get("/organizations")).value("csrf_token")

    assert (await person.submit("/sign-out", {"csrf_token": token})).location == "/sign-in/signed-out"


async def test_a_page_leads_to_the_provider_wherever_its_own_pages_are(person: ConsoleClient) -> None:
    """Browsers apply `form-action` of our policy to the redirects after a form."""
    token = (await person.get("/organizations")).value("csrf_token")
    keys = person.console.sign_in.provider._keys  # type: ignore[union-attr]  # as if it were read like that
    keys._metadata = {**keys._metadata, "end_session_endpoint": "https://sessions.example/logout"}
    page = await person.submit("/sign-out", {"csrf_token": token})

    assert (page.status, page.find(".//h1").text) == (200, "Going to sessions.example")
    link = page.find(".//main//a[@rel='noreferrer']").get("href")
    assert link == page.location
    assert page.location.startswith("https://sessions.example/logout?client_id=")
    assert "form-action 'self';" in page.headers["content-security-policy"]
    assert not [name for name in person.cookies if "session" in name]
    assert page.find_all(".//form[@action='/sign-out']") == []


async def test_another_site_can_sign_nobody_out(person: ConsoleClient) -> None:
    token = (await person.get("/organizations")).value("csrf_token")
    page = await person.submit("/sign-out", {"csrf_token": token}, headers={"origin": "https://evil.example"})
    assert (page.status, page.trouble) == (403, "form_from_elsewhere")
    page = await person.submit("/sign-out", {"csrf_token": "of-another-session"})
    assert (page.status, page.trouble) == (403, "form_outdated")
    assert (await person.get("/sign-out")).status == 404

    assert (await person.get("/organizations")).status == 200


async def test_signing_out_needs_no_valid_token(person: ConsoleClient, desk: Desk) -> None:
    token = (await person.get("/organizations")).value("csrf_token")
    desk.issuer.clock.advance(hours=1)
    desk.issuer.behaviour[TOKEN] = answer(b"{}", status="500 Internal Server Error")

    assert (await person.submit("/sign-out", {"csrf_token": token})).location.startswith(desk.issuer.url)
    assert not [name for name in person.cookies if "session" in name]


async def test_the_refresh_token_is_revoked_at_the_provider(person: ConsoleClient, desk: Desk) -> None:
    """RFC 7009, section 2.1. This client is public, so it names itself."""
    token = (await person.get("/organizations")).value("csrf_token")
    await person.submit("/sign-out", {"csrf_token": token})

    [refresh_token] = desk.good
    expected = {"token": refresh_token, "token_type_hint": "refresh_token", "client_id": CLIENT_ID}
    assert desk.issuer.revocations == [expected]


async def test_a_confidential_client_shows_its_secret_when_it_revokes(
    people: People, desk: Desk, clock: FakeClock
) -> None:
    oidc = {"oidc_issuer": people.issuer.url, "oidc_client_id": CLIENT_ID, "oidc_client_secret": "a-secret"}
    async with running_console(console_settings(**oidc), people.api, clock) as browser:
        await desk.sign_in(browser)
        token = (await browser.get("/organizations")).value("csrf_token")
        await browser.submit("/sign-out", {"csrf_token": token})

    [revocation] = desk.issuer.revocations
    assert revocation["authorization"] == desk.issuer.token_requests[0]["authorization"]
    assert "client_id" not in revocation


async def test_a_session_without_a_refresh_token_has_nothing_to_revoke(visitors: ConsoleClient, desk: Desk) -> None:
    desk.answer = {"refresh_token": None}
    await desk.sign_in(visitors)
    token = (await visitors.get("/organizations")).value("csrf_token")

    assert (await visitors.submit("/sign-out", {"csrf_token": token})).location.startswith(desk.issuer.url)
    assert desk.issuer.revocations == []


# What a provider's revocation endpoint may do, and the reason in the log.
FAULTS: dict[str, tuple[Behaviour, dict[str, object]]] = {
    "silent": (misbehaving_server.silent, {"reason": "deadline"}),
    "hangs up": (misbehaving_server.raw(b""), {"reason": "unreachable"}),
    "fails": (answer(b"{}", status="503 Service Unavailable"), {"reason": "revocation_endpoint", "status": 503}),
    "refuses": (
        answer(b'{"error": "unsupported_token_type"}', status="400 Bad Request"),
        {"reason": "revocation_endpoint", "status": 400},
    ),
    "leads elsewhere": (
        misbehaving_server.raw(b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n"),
        {"reason": "revocation_endpoint", "status": 302},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_revocation_that_fails_is_one_line_and_keeps_nobody_signed_in(
    person: ConsoleClient, desk: Desk, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr("soundmark.console.sign_in.oidc_provider._REVOCATION_TIMEOUT_S", 0.3)
    token, copy = (await person.get("/organizations")).value("csrf_token"), person.copy()
    desk.issuer.behaviour[REVOCATION], expected = FAULTS[fault]
    with structlog.testing.capture_logs() as events:
        left = await person.submit("/sign-out", {"csrf_token": token})

    assert left.location.startswith(f"{desk.issuer.url}/logout?")
    assert events == [{"event": "refresh_token_not_revoked", "log_level": "warning", **expected}]
    assert (await copy.get("/organizations")).location.startswith("/sign-in")


@pytest.mark.parametrize("endpoint", [None, 7, "http://192.0.2.1/"])
async def test_an_address_that_is_not_secure_is_sent_no_token(
    person: ConsoleClient, desk: Desk, endpoint: object
) -> None:
    keys = person.console.sign_in.provider._keys  # type: ignore[union-attr]  # as if it were read like that
    token = (await person.get("/organizations")).value("csrf_token")
    keys._metadata = {**keys._metadata, "revocation_endpoint": endpoint}
    with structlog.testing.capture_logs() as events:
        await person.submit("/sign-out", {"csrf_token": token})

    assert [event["reason"] for event in events] == ["revocation_endpoint"]
    assert desk.issuer.revocations == []


async def test_a_provider_that_offers_no_revocation_is_not_asked(person: ConsoleClient, desk: Desk) -> None:
    keys = person.console.sign_in.provider._keys  # type: ignore[union-attr]  # as if it were read like that
    token = (await person.get("/organizations")).value("csrf_token")
    keys._metadata = {name: value for name, value in keys._metadata.items() if name != "revocation_endpoint"}
    with structlog.testing.capture_logs() as events:
        assert (await person.submit("/sign-out", {"csrf_token": token})).location.startswith(desk.issuer.url)

    assert (events, desk.issuer.revocations) == ([], [])


async def test_signing_out_works_at_a_process_that_never_reached_the_provider(
    people: People, person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    token, copy = (await person.get("/organizations")).value("csrf_token"), person.copy()
    oidc = {"oidc_issuer": people.issuer.url, "oidc_client_id": CLIENT_ID}
    async with desk.issuer.down(), running_console(console_settings(**oidc), people.api, clock) as second:
        browser = person.copy(at=second)
        with structlog.testing.capture_logs() as events:
            assert (await browser.submit("/sign-out", {"csrf_token": token})).location == "/sign-in/signed-out"
        assert (await copy.copy(at=second).get("/organizations")).location.startswith("/sign-in")

    assert [event["reason"] for event in events if event["event"] == "refresh_token_not_revoked"] == ["discovery"]


async def test_a_session_of_a_working_day_ago_is_ended_at_the_provider_too(
    person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    """The provider's session may last longer, and would sign the next person in without a password."""
    token = (await person.get("/organizations")).value("csrf_token")
    clock.advance(seconds=LIFETIME.total_seconds())

    assert (await person.submit("/sign-out", {"csrf_token": token})).location.startswith(f"{desk.issuer.url}/logout?")


async def test_the_operator_has_no_session_at_the_provider(visitors: ConsoleClient, clock: FakeClock) -> None:
    visitors.sign_in_as_operator(clock.now())

    assert (await visitors.submit("/sign-out")).location == "/sign-in/signed-out"


async def test_a_page_that_was_under_way_does_not_undo_a_sign_out(
    person: ConsoleClient, second: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    """Its answer brings refreshed tokens after the session was removed, whichever process removed it."""
    token = (await person.get("/organizations")).value("csrf_token")
    clock.advance(seconds=desk.lifetime_s - 20)
    refreshes = desk.hold_refreshes()
    late = asyncio.ensure_future(person.get("/organizations"))
    await refreshes.has_begun.wait()
    left = await second.submit("/sign-out", {"csrf_token": token})
    refreshes.may_end.set()

    assert (await late).status == 200
    assert "soundmark-8083-session" in person.cookies, "the session is back"
    assert (await second.get("/organizations")).location.startswith("/sign-in"), "and is good for nothing"
    assert "soundmark-8083-session" not in person.cookies
    [remembered] = [each for each in left.headers.get_list("set-cookie") if each.startswith("soundmark-8083-left=")]
    assert f"Max-Age={int(LIFETIME.total_seconds())};" in remembered, "as long as the session could last"


async def test_a_page_that_was_under_way_does_not_bring_an_earlier_session_back(
    person: ConsoleClient, second: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    """Somebody else may have signed in meanwhile, or the same person with a second factor."""
    clock.advance(seconds=desk.lifetime_s - 20)
    refreshes = desk.hold_refreshes()
    late = asyncio.ensure_future(person.get("/organizations"))
    await refreshes.has_begun.wait()
    desk.access = desk.identity = {"acr": "2"}
    await desk.sign_in(second, "/sign-in/step-up")
    assert (await second.get("/organizations")).status == 200
    refreshes.may_end.set()
    await late

    assert (await second.get("/organizations")).location.startswith("/sign-in")


async def test_a_person_who_signs_in_and_out_often_is_signed_in(person: ConsoleClient, desk: Desk) -> None:
    for _ in range(12):
        token = (await person.get("/organizations")).value("csrf_token")
        await person.submit("/sign-out", {"csrf_token": token})
        await desk.sign_in(person)

    assert (await person.get("/organizations")).status == 200
    assert len(person.cookies["soundmark-8083-left"]) < 500
