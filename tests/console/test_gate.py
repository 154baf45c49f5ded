"""Who may see a page, and which forms are accepted."""

import pytest
from support.api.core_client import Api
from support.console.client import CONSOLE_URL, ConsoleClient
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People

from soundmark.console.session import LIFETIME


async def test_a_stranger_is_sent_to_the_sign_in_page_and_back(operator: ConsoleClient) -> None:
    answer = await operator.other().get("/organizations?cursor=a%26b")

    assert answer.location == "/sign-in?return_to=/organizations%3Fcursor%3Da%2526b"


@pytest.mark.parametrize(
    ("peer", "headers"),
    [
        ("203.0.113.9", {}),
        ("127.0.0.1", {"host": "rebound.example.org"}),
        ("127.0.0.1", {"host": "127.0.0.1:8084"}),
        # No browser sends these; a library for URLs finds the right host and port in each.
        ("127.0.0.1", {"host": "x@127.0.0.1:8083"}),
        ("127.0.0.1", {"host": "127.0.0.1:8083/x"}),
        ("127.0.0.1", {"host": "127.0.0.1:8083?x"}),
        ("127.0.0.1", {"host": "127.0.0.1:08083"}),
        ("127.0.0.1", {"host": ""}),
        ("127.0.0.1", [("host", "127.0.0.1:8083"), ("host", "127.0.0.1:8083")]),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1"}),
        ("127.0.0.1", {"forwarded": "for=127.0.0.1"}),
    ],
)
async def test_an_operator_enters_only_from_this_machine(
    operator: ConsoleClient, clock: FakeClock, peer: str, headers: dict[str, str] | list[tuple[str, str]]
) -> None:
    away = operator.other(peer=peer).sign_in_as_operator(clock.now())

    assert (await operator.get("/organizations")).status == 200
    assert (await away.get("/organizations", headers=headers)).location.startswith("/sign-in")


async def test_a_session_ends_after_a_working_day(operator: ConsoleClient, clock: FakeClock) -> None:
    clock.advance(seconds=LIFETIME.total_seconds() - 1)
    assert (await operator.get("/organizations")).status == 200
    clock.advance(seconds=1)

    assert (await operator.get("/organizations")).location.startswith("/sign-in")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:8084"},
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": "null", "sec-fetch-site": ""},
    ],
)
async def test_a_form_of_another_site_changes_nothing(
    operator: ConsoleClient, api: Api, headers: dict[str, str]
) -> None:
    page = await operator.submit("/organizations", {"name": "Radio"}, headers=headers)

    assert page.status == 403
    assert page.trouble == "form_from_elsewhere"
    assert (await api.get("/v1/organizations")).json["data"] == []


async def test_a_form_of_another_site_is_not_read(operator: ConsoleClient) -> None:
    """Any site can send one, as large and as costly as it likes. This one could not be read."""
    unreadable = {"content-type": "text/plain"}

    page = await operator.submit("/organizations", {}, headers={"origin": "https://evil.example", **unreadable})
    assert (page.status, page.trouble) == (403, "form_from_elsewhere")
    assert (await operator.submit("/organizations", {}, headers=unreadable)).trouble == "form_malformed"


@pytest.mark.parametrize("name", ["localhost:8083", "[::1]:8083"])
async def test_an_operator_sends_forms_under_every_name_of_this_machine(operator: ConsoleClient, name: str) -> None:
    sent = {"host": name, "origin": f"http://{name}"}

    assert (await operator.submit("/organizations", {"name": "Radio"}, headers=sent)).status == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:8083", "origin": "http://localhost:8084"},
        {"host": "localhost:8083", "origin": "https://localhost:8083"},
        {"host": "localhost:8083", "origin": "http://[::1]:8083"},
        {"host": "127.0.0.1:8083", "origin": "http://localhost:8083"},
        {"host": "rebound.example.org:8083", "origin": "http://rebound.example.org:8083"},
        {"host": "localhost:8083", "origin": "http://localhost:8083", "x-forwarded-for": "127.0.0.1"},
    ],
)
async def test_a_form_under_another_name_than_the_page_changes_nothing(
    operator: ConsoleClient, headers: dict[str, str]
) -> None:
    page = await operator.submit("/organizations", {"name": "Radio"}, headers=headers)

    assert (page.status, page.trouble) == (403, "form_from_elsewhere")


async def test_a_persons_forms_come_from_the_address_of_the_console_alone(
    visitors: ConsoleClient, people: People, clock: FakeClock
) -> None:
    person = visitors.sign_in_as(people, "alice", clock.now())
    sent = {"host": "localhost:8083", "origin": "http://localhost:8083"}

    assert (await person.submit("/organizations", {"name": "Radio"}, headers=sent)).trouble == "form_from_elsewhere"


@pytest.mark.parametrize("token", ["", "csrf-token-of-others", "é"])
async def test_a_form_without_the_token_of_the_session_changes_nothing(
    operator: ConsoleClient, api: Api, token: str
) -> None:
    page = await operator.submit("/organizations", {"name": "Radio", "csrf_token": token})

    assert page.status == 403
    assert (await api.get("/v1/organizations")).json["data"] == []


async def test_a_page_is_kept_by_nobody(operator: ConsoleClient) -> None:
    assert (await operator.get("/organizations")).headers["cache-control"] == "no-store"


async def test_a_path_that_looks_like_a_host_leads_nowhere_else(operator: ConsoleClient) -> None:
    page = await operator.submit(f"{CONSOLE_URL}//evil.example/organizations", {"name": "Radio"})

    assert page.status == 404
    assert all("//" not in str(form.get("action")) for form in page.find_all(".//form"))
