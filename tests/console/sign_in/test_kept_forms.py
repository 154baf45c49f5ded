"""What was typed when a session ended: it is back after signing in, and was not sent."""

from collections.abc import Callable
from typing import Any

import pytest
from console.conftest import console_settings, running_console
from starlette.responses import Response
from support.console.client import ConsoleClient, PageAnswer
from support.console.login import Desk
from support.identity.oidc_issuer import CLIENT_ID, TOKEN, refuse_grant
from support.outside.misbehaving_server import answer
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.console import app
from soundmark.console.routing import action
from soundmark.console.session import LIFETIME
from soundmark.console.visit import Visit

SECRET = "mail-password-MARKtyped-by-an-administrator"
remember_secret(SECRET)


async def send_too_late(person: ConsoleClient, desk: Desk, clock: FakeClock, path: str, **fields: Any) -> PageAnswer:
    """Open a page, let the session end, and send its form."""
    token = (await person.get("/organizations")).value("csrf_token")
    clock.advance(hours=1)
    answer_tokens, desk.issuer.answer_tokens = desk.issuer.answer_tokens, refuse_grant
    page = await person.submit(path, {**fields, "csrf_token": token})
    desk.issuer.answer_tokens = answer_tokens
    return page


def find_link(page: PageAnswer) -> str:
    return page.find(".//a[@class='button']").get("href") or ""


@pytest.fixture
async def tenant(people: People, person: ConsoleClient) -> Tenant:  # noqa: ARG001 - she is signed in
    """An organisation with one project."""
    return await people.tenant_of("alice")


async def test_a_form_is_back_after_the_session_ended(
    person: ConsoleClient, desk: Desk, clock: FakeClock, tenant: Tenant
) -> None:
    path = f"/organizations/{tenant.organization_id}/projects"
    page = await send_too_late(person, desk, clock, path, name='"Straße" <b>&amp;')
    assert (page.status, page.trouble) == (401, "sign_in.signed_out")
    form = await person.follow(await desk.sign_in(person, find_link(page)))

    assert form.value("name") == '"Straße" <b>&amp;'
    assert "Straße" not in str(person.cookies), "it is sealed"
    listed = await person.get(path)
    assert "Straße" not in listed.text, "nothing was created, and the form is kept once"


async def test_a_form_waits_for_the_person_who_looks_at_the_page_before_signing_in(
    person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    await send_too_late(person, desk, clock, "/organizations", name="Radio")
    answer_tokens, desk.issuer.answer_tokens = desk.issuer.answer_tokens, refuse_grant
    again = await person.follow(await person.get("/organizations"))
    desk.issuer.answer_tokens = answer_tokens

    assert (await person.follow(await desk.sign_in(person, again.location))).value("name") == "Radio"


async def test_a_form_is_back_after_a_working_day(person: ConsoleClient, desk: Desk, clock: FakeClock) -> None:
    token = (await person.get("/organizations")).value("csrf_token")
    clock.advance(seconds=LIFETIME.total_seconds())
    page = await person.submit("/organizations?cursor=", {"name": "Radio", "csrf_token": token})
    assert (page.status, page.trouble) == (401, "sign_in.signed_out")

    assert (await person.follow(await desk.sign_in(person, find_link(page)))).value("name") == "Radio"


async def test_a_button_is_offered_again_and_not_pressed(
    people: People, desk: Desk, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A form that stands on another page, such as the boxes of a list, has no page to come back to."""
    pressed = []

    async def press(visit: Visit) -> Response:
        pressed.append([*visit.form.texts("xr_id")])
        return visit.redirect("/organizations")

    monkeypatch.setattr(app, "PAGES", (*app.PAGES, action("/buttons", press)))
    issuer = {"oidc_issuer": people.issuer.url, "oidc_client_id": CLIENT_ID}
    async with running_console(console_settings(**issuer), people.api, clock) as person:
        await desk.sign_in(person)
        page = await send_too_late(person, desk, clock, "/buttons?at=1", xr_id=["a", "b"])
        offered = await person.follow(await desk.sign_in(person, find_link(page)))
        assert pressed == []
        button = offered.find(".//main/form")
        fields = [(each.get("name"), each.get("value")) for each in button.findall("./input")]
        assert button.get("action") == "/buttons?at=1"
        assert [value for name, value in fields if name == "xr_id"] == ["a", "b"]
        token = offered.value("csrf_token")
        await person.submit("/buttons?at=1", {"xr_id": ["a", "b"], "csrf_token": token})

        assert pressed == [["a", "b"]]
        assert (await person.get("/buttons?at=1")).status == 404


async def test_a_form_is_shown_to_the_person_alone_who_typed_it(
    person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    page = await send_too_late(person, desk, clock, "/organizations", name="Secret plan")
    desk.subject_id = "bob"
    back = await desk.sign_in(person, find_link(page))

    assert "Secret plan" not in (await person.follow(back)).html


async def test_a_form_of_a_working_day_ago_is_shown_to_nobody_else(
    person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    clock.advance(seconds=LIFETIME.total_seconds())
    page = await person.submit("/organizations", {"name": "Secret plan"})
    desk.subject_id = "bob"

    assert "Secret plan" not in (await person.follow(await desk.sign_in(person, find_link(page)))).html


async def test_a_kept_form_is_no_form_of_another_page(
    person: ConsoleClient, desk: Desk, clock: FakeClock, tenant: Tenant
) -> None:
    page = await send_too_late(person, desk, clock, "/organizations", name="Radio")
    await desk.sign_in(person, find_link(page))

    other = await person.get(f"/organizations/{tenant.organization_id}/projects")
    assert other.value("name") == ""
    assert (await person.get("/organizations")).value("name") == "Radio"


async def test_a_form_that_is_too_large_for_cookies_stays_in_its_page(
    person: ConsoleClient, desk: Desk, clock: FakeClock
) -> None:
    long = "A very long name: " + "é" * 4_000
    page = await send_too_late(person, desk, clock, "/organizations", name=long)

    assert (page.status, page.trouble) == (401, "sign_in.signed_out")
    assert page.find(".//a[@class='button']").get("target") == "_blank"
    assert not any("-form" in cookie for cookie in page.headers.get_list("set-cookie"))
    await desk.sign_in(person, find_link(page))  # In another tab of the same browser.
    main = page.find(".//main")
    kept = {each.get("name"): each.get("value") for each in main.findall(".//input")}
    assert kept == {"name": long}
    form = await person.submit("/organizations", {**kept, "csrf_token": ""})
    assert (form.status, form.trouble) == (403, "form_outdated")
    assert form.value("name") == long
    refused = await person.submit("/organizations", {name: form.value(name) for name in ("name", "csrf_token")})
    assert refused.trouble != "form_outdated", "now it is sent for good"


async def test_forms_of_two_tabs_are_both_kept(
    person: ConsoleClient, desk: Desk, clock: FakeClock, tenant: Tenant
) -> None:
    """One waits in the browser, the other in its page; what the script of a third page asks takes no place."""
    projects = f"/organizations/{tenant.organization_id}/projects"
    verdict = f"{projects}/{tenant.project_id}/codes/issue/verdict"
    await send_too_late(person, desk, clock, "/organizations", name="Radio")
    page = await person.submit(projects, {"name": "Morning show", "csrf_token": "of-the-old-session"})
    await person.submit(verdict, {"csrf_token": "of-the-old-session"}, headers={"sec-fetch-mode": "cors"})
    await desk.sign_in(person, find_link(page))

    assert (await person.get("/organizations")).value("name") == "Radio"
    assert "stay in this page" in page.text
    assert page.value("name") == "Morning show"

    asked = await person.other().submit(verdict, {"csrf_token": "of-no-session"}, headers={"sec-fetch-mode": "cors"})
    assert (asked.status, "-form" in str(asked.headers.get_list("set-cookie"))) == (401, False)


async def test_a_form_that_was_opened_before_signing_in_again_is_shown_and_not_sent(
    person: ConsoleClient, desk: Desk, people: People
) -> None:
    desk.access = {"acr": "2"}
    old = (await person.get("/organizations")).value("csrf_token")
    await desk.sign_in(person)
    page = await person.submit("/organizations", {"name": "Radio", "csrf_token": old})

    assert (page.status, page.trouble) == (403, "form_outdated")
    assert page.value("name") == "Radio"
    assert (await people.person("alice").get("/v1/organizations")).json["data"] == []


async def test_the_kept_form_of_a_cookie_from_elsewhere_is_ignored(person: ConsoleClient) -> None:
    for value in ("1.AAAA", "", "1.", person.cookies["soundmark-8083-session"]):
        person.cookies.set("soundmark-8083-form", value, domain="127.0.0.1", path="/")
        assert (await person.get("/organizations")).value("name") == ""


def end_session(desk: Desk, clock: FakeClock, _: ConsoleClient) -> None:
    clock.advance(hours=1)
    desk.issuer.answer_tokens = refuse_grant


def end_day(_: Desk, clock: FakeClock, __: ConsoleClient) -> None:
    clock.advance(seconds=LIFETIME.total_seconds())


def break_provider(desk: Desk, clock: FakeClock, _: ConsoleClient) -> None:
    clock.advance(hours=1)
    desk.issuer.behaviour[TOKEN] = answer(b"{}", status="503 Service Unavailable")


def demand_second_factor(_: Desk, __: FakeClock, person: ConsoleClient) -> None:
    person.core.refuse("PUT /v1/platform/settings/secrets/smtp_password", 403, "mfa_required")


def break_core(_: Desk, __: FakeClock, person: ConsoleClient) -> None:
    person.core.go_down()


@pytest.mark.parametrize("size", [1, 200], ids=["small", "too large for a cookie"])
@pytest.mark.parametrize(
    ("spoil", "trouble"),
    [
        (end_session, "sign_in.signed_out"),
        (end_day, "sign_in.signed_out"),
        (break_provider, "identity_provider_unavailable"),
        (demand_second_factor, "sign_in.second_factor_needed"),
        (break_core, "core_unreachable"),
    ],
)
async def test_a_credential_is_kept_nowhere(
    person: ConsoleClient,
    desk: Desk,
    clock: FakeClock,
    spoil: Callable[[Desk, FakeClock, ConsoleClient], None],
    trouble: str,
    size: int,
) -> None:
    """It would be in a page, in the browser's history, or in a cookie."""
    token = (await person.get("/organizations")).value("csrf_token")
    spoil(desk, clock, person)
    page = await person.submit("/platform/secrets/smtp_password", {"value": SECRET * size, "csrf_token": token})

    assert page.trouble == trouble
    assert SECRET not in page.html
    assert person.console.jar.read("form", dict(person.cookies)) is None
    assert "Your entries" not in page.text, "nothing is promised"
