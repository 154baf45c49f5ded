"""Sessions that have ended: no copy of their cookie is accepted, by any process, whatever happens in between."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from console.conftest import console_settings, running_console
from support.api.core_settings import OPERATOR_TOKEN
from support.console.client import CSRF_TOKEN, ConsoleClient
from support.console.login import Desk
from support.identity.oidc_issuer import CLIENT_ID
from support.outside.redis_server import running_redis
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People

from soundmark.console.session import LIFETIME

StartConsole = Callable[[], AbstractAsyncContextManager[ConsoleClient]]
in_either_place = pytest.mark.parametrize("place", ["file", "server"], indirect=True)


@pytest.fixture(params=["file"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[dict[str, object]]:
    """Where the processes share which sessions have ended, as settings."""
    if request.param == "file":
        yield {"console_state_path": tmp_path}
        return
    async with running_redis() as server:
        yield {"rate_limit_url": server.url}


@pytest.fixture
def start(people: People, clock: FakeClock, place: dict[str, object]) -> StartConsole:
    """Start a process of a console that people sign in to."""
    settings = console_settings(oidc_issuer=people.issuer.url, oidc_client_id=CLIENT_ID, **place)
    return lambda: running_console(settings, people.api, clock)


@pytest.fixture
def start_operators(people: People, clock: FakeClock, place: dict[str, object]) -> StartConsole:
    """Start a process of the operator's console."""
    settings = console_settings(operator_token=OPERATOR_TOKEN, **place)
    return lambda: running_console(settings, people.api, clock)


async def is_signed_in(browser: ConsoleClient) -> bool:
    """Open a page with the cookies as they are now."""
    answer = await browser.copy().get("/listen/none")
    assert answer.status == 404, "public pages are shown to everybody"
    page = await browser.copy().get("/organizations")
    assert page.status == 200 or page.location.startswith("/sign-in"), page.text
    return page.status == 200


async def sign_out(browser: ConsoleClient) -> None:
    page = await browser.get("/organizations")
    await browser.submit("/sign-out", {"csrf_token": page.value("csrf_token")})


@in_either_place
async def test_no_process_accepts_a_copy_of_a_persons_session_that_has_ended(
    start: StartConsole, desk: Desk, clock: FakeClock
) -> None:
    async with start() as here, start() as there:
        await desk.sign_in(here)
        copies = [here.copy(), here.copy(at=there)]
        assert [await is_signed_in(copy) for copy in copies] == [True, True]
        await sign_out(here)
        assert [await is_signed_in(copy) for copy in copies] == [False, False]
        form = await copies[1].submit("/organizations", {"name": "Radio"})
        assert (form.status, form.trouble) == (401, "sign_in.signed_out")
    async with start() as later:
        assert not await is_signed_in(copies[0].copy(at=later))
        clock.advance(seconds=LIFETIME.total_seconds() - 60)
        desk.lifetime_s = 24 * 3600
        assert not await is_signed_in(copies[0].copy(at=later)), "as long as it could last"


@in_either_place
async def test_no_process_accepts_a_copy_of_the_operators_session_that_has_ended(
    start_operators: StartConsole, clock: FakeClock
) -> None:
    async with start_operators() as here, start_operators() as there:
        here.sign_in_as_operator(clock.now())
        copies = [here.copy(), here.copy(at=there)]
        await sign_out(here)
        assert [await is_signed_in(copy) for copy in copies] == [False, False]
    async with start_operators() as later:
        assert not await is_signed_in(copies[0].copy(at=later))


async def test_a_new_login_ends_the_session_that_it_replaces(start: StartConsole, desk: Desk) -> None:
    async with start() as here, start() as there:
        await desk.sign_in(here)
        copy = here.copy(at=there)
        desk.access = desk.identity = {"acr": "2"}
        await desk.sign_in(here, "/sign-in/step-up")
        assert await is_signed_in(here)
        assert not await is_signed_in(copy)
        assert desk.issuer.revocations == [], "the new tokens may rest on the same grant"


async def test_a_session_of_somebody_else_goes_on(start: StartConsole, desk: Desk) -> None:
    async with start() as here, start() as there:
        other = there.other()
        await desk.sign_in(here)
        await desk.sign_in(other)
        await sign_out(here)
        assert await is_signed_in(other)


@pytest.mark.parametrize("is_other_process", [False, True])
async def test_a_refresh_that_ends_after_a_sign_out_gives_nothing(
    start: StartConsole, desk: Desk, clock: FakeClock, *, is_other_process: bool
) -> None:
    """In one tab a page waits for new tokens while the person signs out in another."""
    async with start() as here, start() as there:
        await desk.sign_in(here)
        token = (await here.get("/organizations")).value("csrf_token")
        clock.advance(seconds=desk.lifetime_s - 20)
        refreshes = desk.hold_refreshes()
        page_under_way = here.copy()
        late = asyncio.ensure_future(page_under_way.get("/organizations"))
        await refreshes.has_begun.wait()
        elsewhere = here.copy(at=there if is_other_process else here)
        await elsewhere.submit("/sign-out", {"csrf_token": token})
        refreshes.may_end.set()

        answer = await late
        assert (answer.status, answer.location) == (303, "/organizations")
        assert not any("-session" in cookie for cookie in answer.headers.get_list("set-cookie"))
        assert not await is_signed_in(page_under_way)
        old, new = (form["token"] for form in desk.issuer.revocations)
        assert old == "refresh-0-1", "the token that the person signed out with"
        assert desk.good == {new}, "the token that nobody was given"


async def test_a_form_that_waits_for_a_refresh_during_a_sign_out_is_kept(
    start: StartConsole, desk: Desk, clock: FakeClock
) -> None:
    async with start() as here:
        await desk.sign_in(here)
        token = (await here.get("/organizations")).value("csrf_token")
        clock.advance(seconds=desk.lifetime_s - 20)
        refreshes = desk.hold_refreshes()
        late = asyncio.ensure_future(here.submit("/organizations", {"name": "Radio", "csrf_token": token}))
        await refreshes.has_begun.wait()
        await here.copy().submit("/sign-out", {"csrf_token": token})
        refreshes.may_end.set()

        page = await late
        assert (page.status, page.trouble) == (401, "sign_in.signed_out")
        assert any("-form=" in cookie for cookie in page.headers.get_list("set-cookie"))


async def test_signing_out_with_an_older_cookie_revokes_what_replaced_its_token(
    start: StartConsole, desk: Desk, clock: FakeClock
) -> None:
    async with start() as here:
        await desk.sign_in(here)
        token = (await here.get("/organizations")).value("csrf_token")
        older = here.copy()
        for _ in range(2):
            clock.advance(seconds=desk.lifetime_s - 20)
            assert (await here.get("/organizations")).status == 200
        await older.submit("/sign-out", {"csrf_token": token})

        assert [form["token"] for form in desk.issuer.revocations] == list(desk.good)
        assert not await is_signed_in(here)


async def test_a_session_that_nothing_records_is_refused_where_it_ended(visitors: ConsoleClient, desk: Desk) -> None:
    """A process that shares nothing still knows what it did."""
    await desk.sign_in(visitors)
    copy = visitors.copy()
    await sign_out(visitors)

    assert not await is_signed_in(copy)


async def test_signing_out_a_second_time_revokes_again(start: StartConsole, desk: Desk) -> None:
    """The process may have died after the first half of a sign-out."""
    async with start() as here:
        await desk.sign_in(here)
        copy = here.copy()
        await sign_out(here)
        desk.issuer.revocations.clear()
        left = await copy.submit("/sign-out", {"csrf_token": CSRF_TOKEN})

        assert left.location.startswith(f"{desk.issuer.url}/logout?")
        assert [form["token"] for form in desk.issuer.revocations] == list(desk.good)
