"""Keeping a person signed in: tokens are refreshed once, and no single refusal signs anybody out."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from console.conftest import console_settings, running_console
from support.api.core_client import Api
from support.console.client import ConsoleClient
from support.console.login import Desk
from support.identity.oidc_issuer import CLIENT_ID, TOKEN, refuse_grant
from support.outside.misbehaving_server import answer
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People

from soundmark.console.sign_in.renewal import Renewal
from soundmark.kit.http.asgi import AsgiApp, Receive, Scope, Send


async def test_tokens_are_refreshed_before_they_expire(person: ConsoleClient, desk: Desk, clock: FakeClock) -> None:
    clock.advance(seconds=desk.lifetime_s - 60)
    assert (await person.get("/organizations")).status == 200
    assert desk.refreshes_count == 0

    clock.advance(seconds=35)
    assert (await person.get("/organizations")).status == 200
    assert desk.refreshes_count == 1
    assert (await person.get("/organizations")).status == 200
    assert desk.refreshes_count == 1, "the browser has the new tokens"


async def test_expired_tokens_are_refreshed_as_well(person: ConsoleClient, desk: Desk, clock: FakeClock) -> None:
    clock.advance(hours=1)

    assert (await person.get("/organizations")).status == 200
    assert desk.refreshes_count == 1


async def test_no_refresh_prolongs_a_session_beyond_a_working_day(
    person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    for _ in range(11):
        clock.advance(hours=1)
        assert (await person.get("/organizations")).status == 200
    assert desk.refreshes_count == 11
    clock.advance(hours=1)

    assert (await person.get("/organizations")).location.startswith("/sign-in")


async def test_requests_at_the_same_time_share_one_refresh(person: ConsoleClient, desk: Desk, clock: FakeClock) -> None:
    clock.advance(hours=1)
    pages = await asyncio.gather(*(person.get("/organizations") for _ in range(10)))

    assert [page.status for page in pages] == [200] * 10
    assert desk.refreshes_count == 1


async def test_a_request_that_was_sent_before_the_new_cookie_arrived_uses_the_same_refresh(
    person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    """Two refreshes with one token would revoke the grant."""
    clock.advance(hours=1)
    late = person.other()
    late.cookies.update(person.cookies)
    await person.get("/organizations")

    assert (await late.get("/organizations")).status == 200
    assert desk.refreshes_count == 1
    clock.advance(hours=1)
    assert (await person.get("/organizations")).status == 200, "the grant is still good"
    assert (await late.get("/organizations")).status == 200
    assert desk.refreshes_count == 2


async def test_a_person_who_leaves_does_not_disturb_a_refresh(
    person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    clock.advance(hours=1)
    leaving = asyncio.ensure_future(person.get("/organizations"))
    while not desk.issuer.requested.count(TOKEN) > 1:  # noqa: ASYNC110 - the request happens in another task
        await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)

    assert (await person.get("/organizations")).status == 200
    assert desk.refreshes_count == 1


async def test_tokens_that_live_shorter_than_the_margin_are_refreshed_once_a_page(
    visitors: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    desk.lifetime_s = 20
    await desk.sign_in(visitors)
    await visitors.get("/organizations")
    assert desk.refreshes_count == 1
    clock.advance(seconds=25)
    assert (await visitors.get("/organizations")).status == 200
    assert desk.refreshes_count == 2


async def test_a_refused_refresh_changes_nothing_while_the_access_token_is_valid(
    person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    clock.advance(seconds=desk.lifetime_s - 10)
    desk.issuer.answer_tokens = refuse_grant

    assert (await person.get("/organizations")).status == 200
    assert (await person.get("/organizations")).status == 200


async def test_an_ended_session_leads_to_the_sign_in_page_after_one_more_try(
    person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    clock.advance(hours=1)
    desk.issuer.answer_tokens = refuse_grant

    first = await person.get("/organizations?cursor=a")
    assert first.location == "/organizations?cursor=a", "another process may have given the browser newer tokens"
    second = await person.follow(first)
    assert second.location == "/sign-in?return_to=/organizations%3Fcursor%3Da"
    assert not [name for name in person.cookies if "session" in name], "nothing of the session is left"


async def test_a_session_without_a_refresh_token_ends_with_the_access_token(
    visitors: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    desk.answer = {"refresh_token": None}
    await desk.sign_in(visitors)
    assert (await visitors.get("/organizations")).status == 200
    clock.advance(seconds=desk.lifetime_s + 1)

    assert (await visitors.follow(await visitors.get("/organizations"))).location.startswith("/sign-in")


@pytest.mark.parametrize("answer", [{}, {"refresh_token": None}], ids=["names it again", "names none"])
async def test_a_session_lasts_where_refresh_tokens_stay_the_same(
    visitors: ConsoleClient, desk: Desk, clock: FakeClock, answer: dict[str, Any]
) -> None:
    """A finished refresh is not used again: its access token expires, and the refresh token does not."""
    desk.keeps_refresh_tokens = True
    await desk.sign_in(visitors)
    desk.answer = answer
    for number in range(1, 6):
        clock.advance(seconds=desk.lifetime_s)
        pages = await asyncio.gather(*(visitors.get("/organizations") for _ in range(5)))
        assert [page.status for page in pages] == [200] * 5
        assert desk.refreshes_count == number, "requests at the same time share one"


class ForgetfulCore:
    """Core, which refuses the credentials that a test names, as after a key was withdrawn."""

    def __init__(self, core: AsgiApp) -> None:
        self.core = core
        self.refuses_all = False
        self.refused: set[bytes] = set()
        self.refusals_count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        credential = dict(scope.get("headers", [])).get(b"authorization")
        if scope["type"] == "http" and (self.refuses_all or credential in self.refused):
            self.refusals_count += 1
            scope = {**scope, "headers": [(b"authorization", b"Bearer x")]}
        await self.core(scope, receive, send)

    def refuse_latest(self, desk: Desk) -> None:
        """Refuse the access token that was issued last."""
        self.refused.add(f"Bearer {desk.latest_access_token}".encode())


@pytest.fixture
def forgetful(people: People) -> ForgetfulCore:
    """A Core that forgets who called it."""
    return ForgetfulCore(people.api.app)


@pytest.fixture
async def refused(
    people: People, desk: Desk, clock: FakeClock, forgetful: ForgetfulCore
) -> AsyncIterator[ConsoleClient]:
    """The browser of Alice at a console in front of the forgetful Core."""
    settings = console_settings(oidc_issuer=people.issuer.url, oidc_client_id=CLIENT_ID)
    async with running_console(settings, Api(forgetful, clock), clock) as browser:
        await desk.sign_in(browser)
        yield browser


async def test_a_401_of_core_is_answered_with_new_tokens(
    refused: ConsoleClient, desk: Desk, forgetful: ForgetfulCore
) -> None:
    forgetful.refuse_latest(desk)

    assert (await refused.get("/organizations")).status == 200
    assert (desk.refreshes_count, forgetful.refusals_count) == (1, 1)
    assert (await refused.get("/organizations")).status == 200
    assert forgetful.refusals_count == 1, "the browser has the new tokens"


async def test_a_401_of_core_brings_no_tokens_after_a_sign_out(
    refused: ConsoleClient, desk: Desk, forgetful: ForgetfulCore
) -> None:
    """In one tab a page waits for new tokens while the person signs out in another."""
    token = (await refused.get("/organizations")).value("csrf_token")
    forgetful.refuse_latest(desk)
    refreshes = desk.hold_refreshes()
    late = asyncio.ensure_future(refused.copy().get("/organizations"))
    await refreshes.has_begun.wait()
    await refused.copy().submit("/sign-out", {"csrf_token": token})
    refreshes.may_end.set()

    answer = await late
    assert answer.status == 401
    assert not any("-session" in cookie for cookie in answer.headers.get_list("set-cookie"))
    assert {form["token"] for form in desk.issuer.revocations} > desk.good, "also the tokens that nobody was given"


async def test_calls_of_one_page_that_are_refused_together_share_one_refresh(
    refused: ConsoleClient, desk: Desk, forgetful: ForgetfulCore, people: People
) -> None:
    tenant = await people.tenant_of("alice")
    forgetful.refuse_latest(desk)
    page = await refused.get(f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}")

    assert page.status == 200
    assert desk.refreshes_count == 1


async def test_a_change_that_core_refused_with_401_is_made_once(
    desk: Desk, people: People, refused: ConsoleClient, forgetful: ForgetfulCore
) -> None:
    desk.access = {"acr": "2"}
    await desk.sign_in(refused)
    token = (await refused.get("/organizations")).value("csrf_token")
    forgetful.refuse_latest(desk)
    answer = await refused.submit("/organizations", {"name": "Radio", "csrf_token": token})

    assert answer.status == 303, answer.text
    data = (await people.person("alice").get("/v1/organizations")).json["data"]
    assert [each["name"] for each in data] == ["Radio"]


async def test_a_core_that_always_answers_401_is_a_page_that_keeps_the_form(
    refused: ConsoleClient, desk: Desk, forgetful: ForgetfulCore
) -> None:
    token = (await refused.get("/organizations")).value("csrf_token")
    forgetful.refuses_all = True
    page = await refused.submit("/organizations", {"name": "Radio", "csrf_token": token})

    assert (page.status, page.trouble) == (401, "sign_in.refused")
    assert desk.refreshes_count == 1, "once and no more"
    assert page.find(".//a[@class='button']").get("href") == "/sign-in?return_to=/organizations"
    forgetful.refuses_all = False
    again = await desk.sign_in(refused, page.find(".//a[@class='button']").get("href") or "")
    assert (await refused.follow(again)).value("name") == "Radio"


async def test_a_401_while_the_provider_is_down_is_a_page_and_no_sign_out(
    refused: ConsoleClient, desk: Desk, forgetful: ForgetfulCore
) -> None:
    forgetful.refuses_all = True
    desk.issuer.behaviour[TOKEN] = answer(b"{}", status="503 Service Unavailable")

    assert (await refused.get("/organizations")).trouble == "sign_in.refused"
    forgetful.refuses_all = False
    assert (await refused.get("/organizations")).status == 200


async def test_the_number_of_remembered_refreshes_is_limited(
    person: ConsoleClient, desk: Desk, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soundmark.console.sign_in.refreshing._REMEMBERED_MAX", 3)
    sign_in = person.console.sign_in
    assert sign_in is not None
    renewal: Renewal = sign_in.renewal
    for number in range(10):
        desk.good.add(f"token-{number}")
        await renewal.refresher.refresh(f"token-{number}")

    assert len(renewal.refresher._refreshes) <= 4
    clock.advance(seconds=600)
    await renewal.refresher.refresh(next(iter(desk.good)))
    assert len(renewal.refresher._refreshes) == 1
