"""The one-time link with which the operator signs in where there is no identity provider."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from support.api.core_client import Api
from support.api.core_settings import OPERATOR_TOKEN
from support.console.client import ConsoleClient, PageAnswer
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People

from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.operating_system.one_time_tickets import issue_ticket, make_ticket_folder, remove_ticket_folder

from ..conftest import console_settings, running_console  # noqa: TID252 - test folders are no packages

LINK = "/sign-in/link"
CLOCK = SystemClock()
ENTROPY = SystemEntropy()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for tickets."""
    made = tmp_path / "tickets"
    make_ticket_folder(made, None)
    return made


@pytest.fixture
async def browser(api: Api, clock: FakeClock, folder: Path) -> AsyncIterator[ConsoleClient]:
    """A browser at a console of `soundmark up`, which nobody has signed in with."""
    settings = console_settings(operator_token=OPERATOR_TOKEN, console_tickets_path=folder, trusted_proxies="127.0.0.2")
    async with running_console(settings, api, clock) as client:
        yield client


async def follow(browser: ConsoleClient, ticket: str, **headers: str) -> PageAnswer:
    """Open the link."""
    return await browser.get(f"{LINK}?{urlencode({'ticket': ticket})}", headers=headers)


async def is_signed_in(browser: ConsoleClient) -> bool:
    return (await browser.get("/organizations")).status == 200


async def test_a_link_signs_the_operator_in(browser: ConsoleClient, folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    answer = await follow(browser, ticket)
    assert answer.location == "/"
    shown = await browser.follow(await browser.follow(answer))
    assert shown.status == 200
    assert "operator@localhost" in shown.text


async def test_the_cookie_holds_no_credential(browser: ConsoleClient, folder: Path) -> None:
    answer = await follow(browser, issue_ticket(folder, CLOCK, ENTROPY))
    cookies = answer.headers.get_list("set-cookie")
    assert [cookie.split("=")[0] for cookie in cookies] == ["soundmark-8083-session"]
    assert all("HttpOnly" in cookie and "SameSite=lax" in cookie and "Path=/" in cookie for cookie in cookies)
    session = browser.console.jar.read("session", dict(browser.cookies))
    assert (session["kind"], session["access_token"], session["refresh_token"]) == ("operator", None, None)
    assert OPERATOR_TOKEN not in str(session)


@pytest.mark.parametrize("purpose", ["prefetch", "prefetch;prerender"])
async def test_a_link_that_a_browser_loads_in_advance_is_not_used_up(
    browser: ConsoleClient, folder: Path, purpose: str
) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    assert (await follow(browser, ticket, **{"sec-purpose": purpose})).status == 503
    assert not await is_signed_in(browser)
    assert (await follow(browser, ticket)).location == "/"


async def test_asking_for_the_headers_of_a_link_does_not_use_it_up(browser: ConsoleClient, folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    assert (await browser.head(f"{LINK}?ticket={ticket}")).status == 503
    assert (await follow(browser, ticket)).location == "/"


async def test_a_link_opened_again_in_the_same_browser_leads_to_the_first_page(
    browser: ConsoleClient, folder: Path
) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    await follow(browser, ticket)
    again = await follow(browser, ticket)
    assert again.location == "/"
    assert "set-cookie" not in again.headers


async def test_a_link_works_once(browser: ConsoleClient, folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    await follow(browser, ticket)
    other = browser.other()
    answer = await follow(other, ticket)
    assert (answer.status, answer.trouble) == (403, "link_spent")
    assert not await is_signed_in(other)


async def test_a_link_that_nobody_opened_expires(browser: ConsoleClient, folder: Path, clock: FakeClock) -> None:
    clock.freeze()
    ticket = issue_ticket(folder, clock, ENTROPY)
    clock.advance(hours=1)
    answer = await follow(browser, ticket)
    assert (answer.status, answer.trouble) == (403, "link_spent")
    assert "more than an hour old" in answer.text
    assert not await is_signed_in(browser)


async def test_of_visitors_who_come_together_one_is_signed_in(browser: ConsoleClient, folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    visitors = [browser.other() for _ in range(8)]
    answers = await asyncio.gather(*(follow(visitor, ticket) for visitor in visitors))
    assert sorted(answer.status for answer in answers) == [303] + [403] * 7
    assert sum([await is_signed_in(visitor) for visitor in visitors]) == 1


@pytest.mark.parametrize("ticket", ["", "x", "../" + "a" * 40, "a" * 43, "é" * 43, "a" * 300])
async def test_what_was_never_issued_signs_nobody_in(browser: ConsoleClient, ticket: str) -> None:
    answer = await follow(browser, ticket)
    assert (answer.status, answer.trouble) == (403, "link_spent")
    assert "set-cookie" not in answer.headers


async def test_a_link_without_a_ticket_says_so_at_once(browser: ConsoleClient) -> None:
    answer = await browser.get(LINK)
    assert (answer.status, answer.trouble) == (403, "link_spent")


@pytest.mark.parametrize(
    ("peer", "headers"),
    [
        ("203.0.113.9", {}),
        ("::ffff:203.0.113.9", {}),
        ("10.0.0.1", {}),
        ("127.0.0.2", {}),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1"}),
        ("127.0.0.1", {"forwarded": "for=127.0.0.1"}),
        ("127.0.0.1", {"host": "rebound.example.org:8083"}),
        ("127.0.0.1", {"host": "127.0.0.1.example.org:8083"}),
        ("127.0.0.1", {"host": "127.0.0.1:8084"}),
        ("127.0.0.1", {"host": "127.0.0.1"}),
        ("127.0.0.1", {"host": "192.0.2.1:8083"}),
        ("127.0.0.1", {"host": "127.0.0.1:99999"}),
        ("127.0.0.1", {"host": "["}),
        ("127.0.0.1", {"host": ""}),
    ],
)
async def test_a_link_works_only_on_this_machine_and_is_not_used_up_elsewhere(
    browser: ConsoleClient, folder: Path, peer: str, headers: dict[str, str]
) -> None:
    """The peer 127.0.0.2 is a trusted proxy; a name that leads here may belong to anybody (DNS rebinding)."""
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    away = browser.other(peer=peer)
    answer = await follow(away, ticket, **headers)
    assert (answer.status, answer.trouble) == (403, "link_elsewhere")
    assert "set-cookie" not in answer.headers
    assert (await follow(browser, ticket)).status == 303


@pytest.mark.parametrize("name", ["127.0.0.1:8083", "localhost:8083", "[::1]:8083"])
async def test_every_name_of_this_machine_is_one(browser: ConsoleClient, folder: Path, name: str) -> None:
    assert (await follow(browser, issue_ticket(folder, CLOCK, ENTROPY), host=name)).location == "/"


async def test_an_operator_may_sign_in_again(browser: ConsoleClient, folder: Path, clock: FakeClock) -> None:
    browser.sign_in_as_operator(clock.now())
    assert (await follow(browser, issue_ticket(folder, CLOCK, ENTROPY))).status == 303
    assert await is_signed_in(browser)


async def test_a_missing_folder_of_tickets_is_reported(browser: ConsoleClient, folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    remove_ticket_folder(folder)
    answer = await follow(browser, ticket)
    assert (answer.status, answer.trouble) == (503, "link_tickets_unusable")
    assert not await is_signed_in(browser)


def set_mode(folder: Path, mode: int) -> None:
    folder.chmod(mode)


async def test_a_folder_that_others_can_write_to_signs_nobody_in(browser: ConsoleClient, folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    set_mode(folder, 0o777)
    assert (await follow(browser, ticket)).trouble == "link_tickets_unusable"
    set_mode(folder, 0o700)
    assert (await follow(browser, ticket)).status == 303


async def test_without_a_folder_there_are_no_links(api: Api, clock: FakeClock, folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    async with running_console(console_settings(operator_token=OPERATOR_TOKEN), api, clock) as client:
        answer = await follow(client, ticket)
    assert (answer.status, answer.trouble) == (404, "link_unknown_here")


async def test_with_an_identity_provider_there_are_no_links(people: People, clock: FakeClock, folder: Path) -> None:
    """Core would not take the operator token either."""
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    settings = console_settings(
        operator_token=OPERATOR_TOKEN,
        console_tickets_path=folder,
        oidc_issuer="https://id.example",
        oidc_client_id="console",
    )
    async with running_console(settings, people.api, clock) as client:
        answer = await follow(client, ticket)
    assert (answer.status, answer.trouble) == (404, "link_unknown_here")


async def test_a_refused_link_speaks_the_visitors_language(browser: ConsoleClient) -> None:
    french = browser.other(language="fr")
    assert "Ce lien ne fonctionne pas" in (await follow(french, "x")).text
