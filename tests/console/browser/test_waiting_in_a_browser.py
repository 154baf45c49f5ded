"""A page whose answer is late: a sign that it is awaited, and then the page, or what failed."""

import asyncio

import pytest
from console.browser.conftest import ServedConsole
from playwright.async_api import Page, expect
from support.browser.accessibility import find_broken_in_both_schemes
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.console import core_api

pytestmark = pytest.mark.xdist_group("browser")


async def watch_sign(page: Page) -> asyncio.Event:
    """Return an event that is set once the page shows the sign. Playwright itself looks at no page that is left."""
    is_shown = asyncio.Event()
    await page.expose_function("noteSign", is_shown.set)
    await page.evaluate(
        "new MutationObserver(() => document.getElementById('awaited').checkVisibility() && noteSign())"
        ".observe(document.getElementById('awaited'), { attributes: true })"
    )
    return is_shown


async def test_a_late_page_is_awaited_with_a_sign(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    project = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
    page = await served.open(f"{project}/api-keys", clock.now(), reduced_motion="reduce")
    await page.evaluate("document.getElementById('awaited').hidden = false")
    assert await find_broken_in_both_schemes(page) == {}
    await page.evaluate("document.getElementById('awaited').hidden = true")
    is_shown = await watch_sign(page)
    served.client.core.stall("GET /v1/campaigns")

    await page.get_by_role("link", name="Campaigns").click(no_wait_after=True)

    async with asyncio.timeout(10):
        await is_shown.wait()
    served.client.core.recover()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Campaigns")
    await page.go_back()
    await expect(page.get_by_role("heading", level=1)).to_have_text("API keys")
    await expect(page.locator("#awaited")).to_be_hidden()


async def test_a_form_that_nobody_answers_is_back_with_what_was_typed(
    served: ServedConsole, tenant: Tenant, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.browsing.tolerate("status of 503")
    page = await served.open(f"/organizations/{tenant.organization_id}/settings", clock.now())
    is_shown = await watch_sign(page)
    monkeypatch.setattr(core_api, "_TIMEOUT_S", 1.0)
    served.client.core.stall(f"PATCH /v1/organizations/{tenant.organization_id}")
    await page.get_by_label("Name").fill("Radio Südwest")

    await page.get_by_label("Name").press("Enter", no_wait_after=True)

    async with asyncio.timeout(10):
        await is_shown.wait()
    await expect(page.locator("#trouble")).to_be_focused()
    await expect(page.get_by_label("Name")).to_have_value("Radio Südwest")
    await expect(page.locator("#awaited")).to_be_hidden()
    served.client.core.recover()
