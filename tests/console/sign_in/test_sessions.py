"""Sessions in cookies: any process with the key reads them, and nobody else can make or alter one."""

import asyncio
import re
from collections.abc import Callable

import pytest
from console.conftest import CONSOLE_KEY, console_settings, running_console
from support.api.core_settings import OPERATOR_TOKEN
from support.console.client import ConsoleClient
from support.console.login import Desk
from support.identity.oidc_issuer import CLIENT_ID
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People

from soundmark.console.session import Session

NAME = "soundmark-8083-session"


async def test_processes_with_the_same_key_share_sessions(
    visitors: ConsoleClient, second: ConsoleClient, desk: Desk
) -> None:
    asked = await desk.begin(visitors)
    assert (await desk.come_back(second, asked["state"])).location == "/organizations", "begun here, finished there"
    page = await visitors.get("/organizations")
    answer = await second.submit("/sign-out", {"csrf_token": page.value("csrf_token")})

    assert answer.location.startswith(desk.issuer.url)
    assert (await visitors.get("/organizations")).location.startswith("/sign-in")


async def test_two_processes_that_refresh_one_after_the_other_keep_the_grant(
    person: ConsoleClient, second: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    for number, browser in enumerate((person, second, person, second), start=1):
        clock.advance(seconds=290)
        assert (await browser.get("/organizations")).status == 200
        assert desk.refreshes_count == number


async def test_two_processes_that_refresh_at_the_same_moment_sign_nobody_out(
    person: ConsoleClient, second: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    """Even at a provider that revokes everything: the winner's access token goes on being valid."""
    clock.advance(hours=1)
    pages = await asyncio.gather(person.get("/organizations"), second.get("/organizations"))

    assert sorted(page.status for page in pages) == [200, 303]
    assert [page.location for page in pages if page.status == 303] == ["/organizations"]
    assert desk.refreshes_count == 1
    for browser in (person, second):
        assert (await browser.get("/organizations")).status == 200


async def test_the_loser_of_two_processes_goes_on_with_the_newest_cookie(
    person: ConsoleClient, second: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    """At a provider that refuses a used refresh token and leaves the rest alone."""
    clock.advance(hours=1)
    before = dict(person.cookies)
    await person.get("/organizations")  # This process wins, and the browser takes its cookies.
    newest, good = dict(person.cookies), set(desk.good)
    person.cookies.clear()
    person.cookies.update(before)
    lost = await second.get("/organizations")
    desk.good |= good

    assert lost.location == "/organizations", "the page is loaded once more"
    assert "session" not in "".join(lost.headers.get_list("set-cookie")), "the newest cookie is left alone"
    person.cookies.update(newest)
    assert (await second.get("/organizations")).status == 200


async def test_a_form_that_meets_a_lost_refresh_is_kept(
    person: ConsoleClient, second: ConsoleClient, clock: FakeClock
) -> None:
    token = (await person.get("/organizations")).value("csrf_token")
    late = second.other()
    late.cookies.update(second.cookies)
    clock.advance(hours=1)
    await person.get("/organizations")
    page = await late.submit("/organizations", {"name": "Radio", "csrf_token": token})

    assert (page.status, page.trouble) == (401, "sign_in.signed_out")
    assert not any("session" in cookie for cookie in page.headers.get_list("set-cookie"))
    assert any("-form=" in cookie for cookie in page.headers.get_list("set-cookie"))


def alter(value: str) -> str:
    middle = len(value) // 2
    return value[:middle] + ("A" if value[middle] != "A" else "B") + value[middle + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        alter,
        lambda value: value[:-1],
        lambda value: value[: len(value) // 2],
        lambda value: value + "AAAA",
        lambda _: "",
        lambda _: "1.",
        lambda _: "9." + "A" * 3000,
        lambda _: "-1.A",
        lambda _: "1.é",
        lambda _: "1.!!!!",
        lambda value: value.removeprefix("1."),
    ],
)
async def test_a_damaged_cookie_is_no_session_and_is_removed(
    person: ConsoleClient, damage: Callable[[str], str]
) -> None:
    value = damage(person.cookies[NAME])
    answer = await person.other().get("/organizations", headers={"cookie": f"{NAME}={value}".encode()})

    assert answer.location.startswith("/sign-in")
    assert [cookie.partition("=")[0] for cookie in answer.headers.get_list("set-cookie")] == [NAME]
    assert "Max-Age=0" in answer.headers["set-cookie"]


async def test_a_session_has_one_spelling(person: ConsoleClient, subtests: pytest.Subtests) -> None:
    """Whatever counts, compares or forgets cookies would see another one in each of these."""
    for respell in [
        lambda content: {NAME: f"2.{content}"},
        lambda content: {NAME: f"2.{content}", f"{NAME}.1": ""},
        lambda content: {NAME: f"2.{content[:100]}", f"{NAME}.1": content[100:]},
        lambda content: {NAME: "2.", f"{NAME}.1": content},
        lambda content: {NAME: f"1.{content}", f"{NAME}.1": ""},
        lambda content: {NAME: f"1.{content}", f"{NAME}.7": "A"},
        lambda content: {NAME: f"01.{content}"},
        lambda content: {NAME: f"+1.{content}"},
        lambda content: {NAME: f"1.{content}="},
        lambda content: {NAME: f'"1.{content}"'},
        lambda content: {NAME: f'"\\061.{content}"'},
        lambda content: {"soundmark-8084-session": f"1.{content}"},
        lambda content: {"session": f"1.{content}"},
    ]:
        with subtests.test(respell=respell):
            cookies = respell(person.cookies[NAME].removeprefix("1."))
            sent = "; ".join(f"{name}={value}" for name, value in cookies.items())

            assert (await person.other().get("/organizations", headers={"cookie": sent})).location.startswith(
                "/sign-in"
            )


async def test_a_large_session_has_one_division(visitors: ConsoleClient, desk: Desk) -> None:
    desk.access = {"groups": ["a-group-with-a-long-name"] * 150}
    await desk.sign_in(visitors)
    parts = {name: value for name, value in visitors.cookies.items() if name.startswith(NAME)}
    first, second = parts.pop(NAME), parts.pop(f"{NAME}.1")
    moved = {NAME: first[:-1], f"{NAME}.1": first[-1] + second, **parts}
    sent = "; ".join(f"{name}={value}" for name, value in moved.items())

    assert (await visitors.get("/organizations")).status == 200
    assert (await visitors.other().get("/organizations", headers={"cookie": sent})).location.startswith("/sign-in")


async def test_a_large_session_needs_all_its_parts(visitors: ConsoleClient, desk: Desk) -> None:
    desk.access = {"groups": ["a-group-with-a-long-name"] * 150}
    answer = await desk.sign_in(visitors)
    assert answer.location == "/organizations"
    names = sorted(name for name in visitors.cookies if "session" in name)
    assert len(names) > 1
    assert (await visitors.get("/organizations")).status == 200

    last = names[-1]
    value = visitors.cookies[last]
    visitors.cookies.delete(last)
    gone = await visitors.get("/organizations")
    assert gone.location.startswith("/sign-in")
    visitors.cookies.set(last, value, domain="127.0.0.1", path="/")
    assert (await visitors.get("/organizations")).location.startswith("/sign-in"), "the other parts were removed"


async def test_a_smaller_session_leaves_no_parts_of_a_larger_one(visitors: ConsoleClient, desk: Desk) -> None:
    desk.access = {"groups": ["a-group-with-a-long-name"] * 150}
    await desk.sign_in(visitors)
    desk.access = {}
    await desk.sign_in(visitors)

    assert [name for name in visitors.cookies if "session" in name] == ["soundmark-8083-session"]
    assert (await visitors.get("/organizations")).status == 200


async def test_the_largest_tokens_that_core_takes_fit(visitors: ConsoleClient, desk: Desk) -> None:
    desk.answer = {"access_token": "a" * 8 * 1024, "refresh_token": "r" * 8 * 1024}

    assert (await desk.sign_in(visitors)).location == "/organizations"


async def test_tokens_that_do_not_fit_into_cookies_are_a_page(
    visitors: ConsoleClient, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soundmark.console.sealed_cookies._CHUNKS_MAX", 2)
    desk.answer = {"access_token": "a" * 8 * 1024}
    page = await desk.sign_in(visitors)

    assert (page.status, page.trouble) == (503, "sign_in.tokens_too_large")


async def test_renewed_tokens_that_do_not_fit_into_cookies_spoil_no_page(
    person: ConsoleClient, desk: Desk, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soundmark.console.sealed_cookies._CHUNKS_MAX", 2)
    desk.answer = {"refresh_token": "r" * 8 * 1024}
    clock.advance(seconds=290)

    assert (await person.get("/organizations")).status == 200


async def test_a_session_under_another_key_is_refused(person: ConsoleClient, people: People, clock: FakeClock) -> None:
    issuer = {"oidc_issuer": people.issuer.url, "oidc_client_id": CLIENT_ID}
    other = console_settings(**issuer, console_key=CONSOLE_KEY.replace("c", "d"))
    async with running_console(other, people.api, clock) as browser:
        browser._client._cookies = person._client._cookies
        answer = await browser.get("/organizations")

    assert answer.location.startswith("/sign-in")
    assert not [name for name in person.cookies if "session" in name]


async def test_a_cookie_of_another_name_is_no_session(person: ConsoleClient, desk: Desk) -> None:
    await desk.begin(person)
    attempt = next(value for name, value in person.cookies.items() if "attempt-" in name)
    person.cookies.set("soundmark-8083-session", attempt, domain="127.0.0.1", path="/")

    assert (await person.get("/organizations")).location.startswith("/sign-in")


async def test_an_operators_session_ends_where_an_identity_provider_is_configured(
    visitors: ConsoleClient, clock: FakeClock
) -> None:
    visitors.sign_in_as_operator(clock.now())

    assert (await visitors.get("/organizations")).location.startswith("/sign-in")


async def test_a_persons_session_ends_where_no_identity_provider_is_configured(
    people: People, desk: Desk, clock: FakeClock
) -> None:
    session = Session("oidc", "alice", None, "t", clock.now(), access_token=desk.issuer.token())
    async with running_console(console_settings(operator_token=OPERATOR_TOKEN), people.api, clock) as browser:
        browser.sign_in(session)
        assert (await browser.get("/organizations")).location.startswith("/sign-in")
        page = await browser.follow(await browser.get("/organizations"))
        assert (page.status, page.trouble) == (200, None), "it is the front page, not a failure"
        assert "soundmark up" in page.text


@pytest.mark.parametrize(
    ("url", "prefix"),
    [
        ("https://console.example.org", "__Host-soundmark-"),
        ("https://console.example.org:443", "__Host-soundmark-"),
        ("https://console.example.org:8443", "__Host-soundmark-8443-"),
    ],
)
async def test_cookies_over_https_belong_to_this_host_and_port_alone(
    people: People, desk: Desk, clock: FakeClock, url: str, prefix: str
) -> None:
    """Two consoles on one machine would otherwise remove each other's sessions."""
    oidc = {"oidc_issuer": people.issuer.url, "oidc_client_id": CLIENT_ID}
    async with running_console(console_settings(console_url=url, **oidc), people.api, clock) as client:
        browser = client.other(origin=url)
        asked = await desk.begin(browser)
        answer = await desk.come_back(browser, asked["state"])

        assert asked["redirect_uri"] == f"{url.removesuffix(':443')}/sign-in/callback"
        cookies = answer.headers.get_list("set-cookie")
        assert len(cookies) == 2, "the session, and the attempt that is over"
        for cookie in cookies:
            assert re.match(rf"{prefix}(session|attempt-[0-9a-f]+)=", cookie)
            assert "; Secure" in cookie
            assert "; Path=/;" in f"{cookie};"
            assert "Domain" not in cookie
        assert (await browser.get("/organizations")).status == 200
