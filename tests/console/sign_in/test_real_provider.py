"""Signing in with a third-party provider, `oidc-provider`, in front of a Core that verifies its tokens."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest
import structlog
from console.conftest import console_settings, running_console
from support.api.core_settings import core_settings
from support.console.client import CONSOLE_URL, ConsoleClient, PageAnswer
from support.identity.real_oidc_provider import API, CONSOLE, CONSOLE_WITH_SECRET, Visitor, read_part, running_providers
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.people import People

from soundmark.console.sign_in.identity_provider import GrantRefused
from soundmark.kit.crypto.secret import Secret

# One process with all four providers serves the whole file.
pytestmark = pytest.mark.xdist_group("real provider of the console")


@pytest.fixture(scope="module")
def issuers() -> Iterator[dict[str, str]]:
    """The identity providers that are under test."""
    with running_providers(CONSOLE_URL) as running:
        yield running


@dataclass
class Person:
    """A person with one browser, at the console and at the provider."""

    console: ConsoleClient
    visitor: Visitor

    async def follow_through(self, answer: PageAnswer, *, forms_max: int = 1) -> PageAnswer:
        """Go through the provider, and return what the console answers afterwards."""
        url = await self.visitor.follow(answer.location, CONSOLE_URL, forms_max=forms_max)
        return await self.console.get(url.removeprefix(CONSOLE_URL))

    async def sign_in(self, path: str = "/sign-in?return_to=/organizations") -> PageAnswer:
        return await self.follow_through(await self.console.get(path))

    async def create_organization(self, name: str) -> PageAnswer:
        form = await self.console.get("/organizations")
        return await self.console.submit("/organizations", {"name": name, "csrf_token": form.value("csrf_token")})


@pytest.fixture(params=["RS256"])
async def person(
    issuers: dict[str, str],
    request: pytest.FixtureRequest,
    database_url: Secret,
    people: People,
    clock: FakeClock,
) -> AsyncIterator[Person]:
    """Alice, who has never been here, at a console and a Core with this provider."""
    issuer = issuers[request.param]
    assert people is not None, "the database is empty"
    settings = core_settings(database_url, oidc_issuer=issuer, oidc_client_id=CONSOLE)
    async with (
        running_core(settings) as api,
        running_console(console_settings(oidc_issuer=issuer, oidc_client_id=CONSOLE), api, clock) as browser,
        Visitor() as visitor,
    ):
        yield Person(browser, visitor)


@pytest.mark.parametrize("person", ["RS256", "PS256", "EdDSA"], indirect=True)
async def test_a_person_signs_in_steps_up_and_does_what_needs_it(person: Person) -> None:
    page = await person.console.follow(await person.sign_in())
    assert "alice@example.org" in page.text
    page = await person.create_organization("Radio")
    assert page.trouble == "sign_in.second_factor_needed"

    person.visitor.otp = "123456"
    back = await person.follow_through(
        await person.console.get(page.find(".//main//a[@class='button']").get("href") or "")
    )
    form = await person.console.follow(back)
    assert form.value("name") == "Radio"
    done = await person.console.submit("/organizations", {name: form.value(name) for name in ("name", "csrf_token")})
    assert done.location.endswith("/projects")
    assert person.visitor.forms_count == 2


async def test_a_second_login_needs_no_password_at_the_provider(person: Person) -> None:
    await person.sign_in()
    await person.sign_in()

    assert person.visitor.forms_count == 1


async def test_tokens_are_refreshed_and_rotated(person: Person, clock: FakeClock) -> None:
    await person.sign_in()
    for _ in range(3):
        clock.advance(seconds=290)
        pages = await asyncio.gather(*(person.console.get("/organizations") for _ in range(5)))
        assert [page.status for page in pages] == [200] * 5
    clock.reset()


async def test_a_refresh_token_that_was_used_twice_ends_the_grant_and_the_next_login_mends_it(
    person: Person, clock: FakeClock
) -> None:
    """As when two processes that share nothing refresh at the same time: one of them loses."""
    await person.sign_in()
    session = person.console.console.sessions.jar.read("session", dict(person.console.cookies))
    sign_in = person.console.console.sign_in
    assert sign_in is not None
    await sign_in.provider.refresh(session["refresh_token"])
    clock.advance(seconds=310)
    first = await person.console.get("/organizations?cursor=")
    second = await person.console.follow(first)
    assert second.location.startswith("/sign-in?return_to=")

    back = await person.follow_through(await person.console.follow(second), forms_max=0)
    assert (await person.console.follow(back)).status == 200
    assert person.visitor.forms_count == 1, "the session at the provider is still good, so nobody types anything"
    clock.reset()


async def test_a_person_who_cancels_the_second_factor_is_told_what_to_do(person: Person) -> None:
    await person.sign_in()
    person.visitor.cancels = True
    told = await person.sign_in("/sign-in/step-up?return_to=/organizations")

    assert (told.status, told.trouble) == (403, "sign_in.no_second_factor")
    assert (await person.console.get("/organizations")).status == 200


@pytest.mark.parametrize("person", ["ES256"], indirect=True)
async def test_a_provider_that_ignores_the_demand_leads_to_no_loop(person: Person) -> None:
    """This one knows no `claims` parameter and answers at once, with the login that it has."""
    await person.sign_in()
    told = await person.sign_in("/sign-in/step-up?return_to=/organizations")

    assert (told.status, told.trouble) == (403, "sign_in.no_second_factor")
    assert person.visitor.forms_count == 1


async def test_another_person_at_the_step_up_is_refused(person: Person) -> None:
    await person.sign_in()
    person.visitor.name, person.visitor.otp = "mallory", "123456"
    told = await person.sign_in("/sign-in/step-up?return_to=/organizations")

    assert told.trouble == "sign_in.another_person"
    assert "alice@example.org" in (await person.console.get("/organizations")).text


async def test_signing_out_ends_the_session_at_the_provider_too(person: Person) -> None:
    await person.sign_in()
    form = await person.console.get("/organizations")
    left = await person.console.submit("/sign-out", {"csrf_token": form.value("csrf_token")})
    url = await person.visitor.confirm_sign_out(left.location)
    assert url == f"{CONSOLE_URL}/sign-in/signed-out"
    assert (await person.console.get("/sign-in/signed-out")).status == 200

    await person.sign_in()
    assert person.visitor.forms_count == 2, "the provider asks who it is"


async def test_signing_out_makes_every_copy_of_the_session_and_its_refresh_token_worthless(person: Person) -> None:
    await person.sign_in()
    session = person.console.console.sessions.jar.read("session", dict(person.console.cookies))
    copy = person.console.copy()
    form = await person.console.get("/organizations")
    with structlog.testing.capture_logs() as events:
        await person.console.submit("/sign-out", {"csrf_token": form.value("csrf_token")})

    assert events == [], "the provider revoked it"
    assert (await copy.get("/organizations")).location.startswith("/sign-in")
    assert person.console.console.sign_in is not None
    with pytest.raises(GrantRefused):
        await person.console.console.sign_in.provider.refresh(session["refresh_token"])


async def test_a_console_with_a_secret_signs_people_in_and_out(
    issuers: dict[str, str], people: People, clock: FakeClock
) -> None:
    client_id, secret = CONSOLE_WITH_SECRET
    oidc = {"oidc_issuer": issuers["RS256"], "oidc_client_id": client_id, "oidc_client_secret": secret}
    settings = console_settings(**oidc, oidc_resource=API)
    async with running_console(settings, people.api, clock) as browser, Visitor() as visitor:
        answer = await Person(browser, visitor).sign_in()

        assert answer.location == "/organizations"
        session = browser.console.sessions.jar.read("session", dict(browser.cookies))
        assert read_part(session["access_token"], 1)["aud"] == API, "otherwise this provider gives opaque tokens"
        sign_in = browser.console.sign_in
        assert sign_in is not None
        refreshed = await sign_in.provider.refresh(session["refresh_token"])
        assert read_part(refreshed.access_token, 1)["aud"] == API
        await sign_in.provider.revoke(str(refreshed.refresh_token))
        with pytest.raises(GrantRefused):
            await sign_in.provider.refresh(str(refreshed.refresh_token))
