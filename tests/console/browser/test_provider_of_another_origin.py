"""An identity provider whose pages are on another origin than its issuer, in a real browser.

`form-action` of our policy holds for every redirect after a form, as Chromium applies it.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from console.conftest import connect_to, console_settings
from playwright.async_api import Page, expect
from support.browser.chromium import Browsing
from support.console.client import ConsoleClient
from support.console.faulty_core import FaultyCore
from support.identity.oidc_issuer import CLIENT_ID
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import served_in_loop
from support.tenancy.people import People

from soundmark.console.app import assemble_app, make_console
from soundmark.kit.http.server import sockets

pytestmark = pytest.mark.xdist_group("browser")


@dataclass(frozen=True)
class Site:
    """A console whose provider has its pages on `localhost`, which is another origin than 127.0.0.1."""

    client: ConsoleClient
    people: People
    browsing: Browsing

    async def open(self, path: str) -> Page:
        """Open a page as Alice."""
        self.client.sign_in_as(self.people, "alice", self.client.console.clock.now())
        page = await self.browsing.open_page()
        url = self.client.origin
        await page.context.add_cookies(
            [{"name": each.name, "value": str(each.value), "url": url} for each in self.client.cookies.jar]
        )
        await page.goto(url + path)
        return page


@pytest.fixture
async def site(people: People, clock: FakeClock, browsing: Browsing) -> AsyncIterator[Site]:
    """A console whose identity provider has another origin."""
    people.issuer.reset()
    pages = people.issuer.url.replace("127.0.0.1", "localhost")
    people.issuer.discovery = {"authorization_endpoint": f"{pages}/auth", "end_session_endpoint": f"{pages}/logout"}
    browsing.tolerate("status of 404")  # The issuer of the tests has no pages.
    with sockets.shared_socket("127.0.0.1", 0) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        settings = console_settings(console_url=url, oidc_issuer=people.issuer.url, oidc_client_id=CLIENT_ID)
        core = FaultyCore(connect_to(people.api.app))
        console = make_console(settings, clock, core)
        app = assemble_app(console)
        async with served_in_loop(app, sock):
            yield Site(ConsoleClient(app, console, core, origin=url), people, browsing)
    people.issuer.reset()


async def test_the_choice_of_a_language_leads_to_the_provider_after_the_session_ended(site: Site) -> None:
    page = await site.open("/organizations")
    await page.context.clear_cookies()
    await page.locator("header summary").click()
    await page.get_by_role("button", name="Français").click()

    await expect(page).to_have_url(re.compile(r"^http://localhost:\d+/.*/auth\?.*ui_locales=fr"))


async def test_the_filters_of_a_list_lead_to_the_provider_after_the_session_ended(site: Site) -> None:
    tenant = await site.people.tenant_of("alice")
    page = await site.open(f"/organizations/{tenant.organization_id}/audit-log")
    await page.context.clear_cookies()
    await page.get_by_role("button", name="Show these entries").click()

    await expect(page).to_have_url(re.compile(r"^http://localhost:\d+/.*/auth\?"))


async def test_signing_out_leads_to_the_provider(site: Site) -> None:
    page = await site.open("/organizations")
    await page.locator("header summary").click()
    await page.get_by_role("button", name="Sign out").click()

    await expect(page).to_have_url(re.compile(r"^http://localhost:\d+/.*/logout\?"))


async def test_the_back_button_does_not_lead_to_the_provider_again(site: Site) -> None:
    page = await site.open("/sign-in/signed-out")
    await page.context.clear_cookies()
    await page.goto(f"{site.client.origin}/organizations")
    await expect(page).to_have_url(re.compile("^http://localhost"))
    await page.go_back()

    await expect(page).to_have_url(f"{site.client.origin}/sign-in/signed-out")
