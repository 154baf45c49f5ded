"""Signing in with a real browser at a third-party provider, with scripts and without them."""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest
from console.conftest import connect_to, console_settings
from playwright.async_api import BrowserContext, Page, expect
from support.api.core_settings import core_settings
from support.browser.accessibility import find_broken_rules
from support.browser.chromium import Browsing
from support.identity.real_oidc_provider import CONSOLE, running_providers
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core, served_in_loop
from support.tenancy.people import People

from soundmark.console.app import assemble_app, make_console
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server import sockets

pytestmark = pytest.mark.xdist_group("browser")


@dataclass(frozen=True)
class Site:
    """A console with its provider, and one person's browser."""

    url: str
    context: BrowserContext

    async def sign_in(self, path: str = "/organizations") -> Page:
        """Open a page of the console, and sign in when the provider asks."""
        page = await self.context.new_page()
        await page.goto(self.url + path)
        await fill_in_at_provider(page)
        await expect(page).to_have_url(self.url + path)  # The provider's page has a field of the same name.
        return page

    async def end_session(self) -> None:
        """Remove the session, as if the browser had been closed meanwhile."""
        for cookie in await self.context.cookies():
            if "-session" in cookie["name"]:
                await self.context.clear_cookies(name=cookie["name"])


async def fill_in_at_provider(page: Page, *, otp: str = "", name: str = "alice") -> None:
    await expect(page).to_have_title("Identity provider")
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("One-time password").fill(otp)
    await page.get_by_role("button", name="Sign in").click()


@dataclass(frozen=True)
class Place:
    """Where the console is served, and the provider that knows this address."""

    port: int
    issuer: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A port for a console, and a provider that knows it."""
    # Nobody listens on this socket: it keeps the port for the consoles of the tests.
    with sockets.shared_socket("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with running_providers(f"http://127.0.0.1:{port}") as issuers:
            yield Place(port, issuers["RS256"])


@pytest.fixture
async def site(
    place: Place, database_url: Secret, people: People, browsing: Browsing, request: pytest.FixtureRequest
) -> AsyncIterator[Site]:
    """The console with its provider, and a browser of Alice, who has never been here."""
    assert people is not None, "the database is empty"
    has_scripts = getattr(request, "param", True)
    clock = FakeClock()
    oidc = {"oidc_issuer": place.issuer, "oidc_client_id": CONSOLE}
    async with running_core(core_settings(database_url, **oidc), clock) as api:
        settings = console_settings(console_url=place.url, **oidc)
        app = assemble_app(make_console(settings, clock, connect_to(api.app)))
        with sockets.shared_socket("127.0.0.1", place.port) as sock:
            async with served_in_loop(app, sock):
                # Chromium logs every answer of 400 and above as an error, and ours are pages.
                browsing.tolerate(r"status of 40[013]")
                yield Site(place.url, await browsing.open_context(java_script_enabled=has_scripts))


@pytest.mark.parametrize("site", [True, False], ids=["with scripts", "without scripts"], indirect=True)
async def test_a_person_signs_in_steps_up_and_signs_out(site: Site) -> None:
    page = await site.sign_in()
    await page.get_by_label("Name").fill("Radio “Ünï”")
    await page.get_by_role("button", name="Create an organisation").click()
    await page.get_by_role("link", name="Confirm with a second factor").click()
    await fill_in_at_provider(page, otp="123456")

    await expect(page).to_have_url(f"{site.url}/organizations")
    await expect(page.get_by_label("Name")).to_have_value("Radio “Ünï”")
    await page.get_by_role("button", name="Create an organisation").click()
    await page.wait_for_url("**/projects")
    assert await page.get_by_text("Radio “Ünï”").count() > 0

    await page.locator("header summary").click()
    await page.get_by_role("button", name="Sign out").click()
    await page.get_by_role("button", name="Yes").click()
    await expect(page).to_have_url(f"{site.url}/sign-in/signed-out")
    await page.goto(f"{site.url}/organizations")
    await expect(page).to_have_title("Identity provider")


@pytest.mark.parametrize("site", [True, False], ids=["with scripts", "without scripts"], indirect=True)
async def test_a_form_is_back_after_the_session_ended(site: Site) -> None:
    page = await site.sign_in()
    await page.get_by_label("Name").fill("Kept")
    await site.end_session()
    await page.get_by_role("button", name="Create an organisation").click()
    await expect(page).to_have_title(re.compile("Your session has ended"))
    await page.get_by_role("main").get_by_role("link", name="Sign in").click()

    await expect(page.get_by_label("Name")).to_have_value("Kept")


async def test_a_form_that_is_too_large_for_cookies_is_back_from_another_tab(site: Site) -> None:
    page = await site.sign_in()
    long = "long " * 1_500
    await page.get_by_label("Name").evaluate("each => each.removeAttribute('maxlength')")
    await page.get_by_label("Name").fill(long)
    await site.end_session()
    await page.get_by_role("button", name="Create an organisation").click()
    async with site.context.expect_page() as opened:
        await page.get_by_role("link", name="Sign in (opens another tab)").click()
    other = await opened.value
    await other.wait_for_url(f"{site.url}/organizations")
    await page.get_by_role("button", name="I have signed in: continue").click()

    await expect(page.get_by_label("Name")).to_have_value(long)
    await expect(page.locator("#trouble")).to_have_attribute("data-code", "form_outdated")


async def test_two_tabs_sign_in_and_the_back_button_harms_nothing(site: Site) -> None:
    first, second = await site.context.new_page(), await site.context.new_page()
    await first.goto(f"{site.url}/organizations")
    await second.goto(f"{site.url}/organizations")
    await fill_in_at_provider(second)
    await expect(second).to_have_url(f"{site.url}/organizations")
    await fill_in_at_provider(first)
    await expect(first).to_have_url(f"{site.url}/organizations")

    await first.go_back()
    await expect(first).to_have_title("This login is over")
    await first.go_forward()
    await expect(first).to_have_url(f"{site.url}/organizations")
    await first.goto(f"{site.url}/sign-in/callback?code=used&state=used")
    await expect(first).to_have_url(f"{site.url}/organizations")
    assert await first.get_by_text("alice@example.org").count() == 1


async def test_a_person_who_cancels_is_told_so_and_not_sent_back(site: Site) -> None:
    page = await site.sign_in()
    await page.goto(f"{site.url}/sign-in/step-up?return_to=/organizations")
    await page.get_by_role("button", name="Cancel").click()

    await expect(page.locator("#trouble")).to_have_attribute("data-code", "sign_in.no_second_factor")
    await page.get_by_role("link", name="Go back without it").click()
    await expect(page).to_have_url(f"{site.url}/organizations")


async def test_no_page_about_signing_in_breaks_a_rule(site: Site) -> None:
    page = await site.sign_in()
    await page.get_by_label("Name").fill("Radio")
    await page.get_by_role("button", name="Create an organisation").click()
    await page.get_by_role("link", name="Confirm with a second factor").wait_for()
    broken = {"second factor needed": await find_broken_rules(page)}
    for path in ("/sign-in/callback?state=r-unknown", "/sign-in/signed-out"):
        await site.end_session()
        await page.goto(site.url + path)
        broken[path] = await find_broken_rules(page)
    assert not any(broken.values()), broken
