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
        "new MutationObserver(() => document.getElementById('awaited').textContent && noteSign())"
        ".observe(document.getElementById('awaited'), { childList: true })"
    )
    return is_shown


async def test_a_late_page_is_awaited_with_a_sign(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    project = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
    page = await served.open(f"{project}/api-keys", clock.now(), reduced_motion="reduce")
    sign = page.get_by_role("status").and_(page.locator("#awaited"))
    await expect(sign).to_have_text("")
    await page.evaluate("import('/static/js/waiting.js').then(({ wait }) => wait())")
    await expect(sign).to_have_text("Waiting for the service…")
    assert await find_broken_in_both_schemes(page) == {}
    await page.emulate_media(reduced_motion="no-preference")
    pulse = "each => each.getAnimations().flatMap((each) => each.effect.getKeyframes()).flatMap(Object.keys)"
    assert "opacity" not in await sign.evaluate(pulse), "the text keeps its contrast"
    await page.reload()
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


async def test_the_issuing_of_codes_is_awaited_with_a_sign(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    """A script keeps the request first, and then sends the form."""
    served.browsing.tolerate("status of 503")
    page = await served.open(
        f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/codes/issue", clock.now()
    )
    await page.fill("#field-issuer", "Radio Nordlicht")
    await page.fill("#field-url", "https://example.org/")
    is_shown = await watch_sign(page)
    await page.route("**/issue/tuple", lambda route: route.fulfill(status=503))
    await page.click("#issuance button:not([name])")
    await expect(page.locator("#verdict")).to_have_attribute("data-would-issue", "no")
    await expect(page.locator("#awaited")).to_be_empty()
    await page.unroute("**/issue/tuple")
    served.client.core.stall("POST /v1/codes")

    await page.click("#issuance button:not([name])", no_wait_after=True)

    async with asyncio.timeout(10):
        await is_shown.wait()
    served.client.core.recover()
    await page.wait_for_url("**/codes/xr_*")


async def test_the_sign_stays_for_as_long_as_the_answer_may_take(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    """Of an answer within 25 s it goes after 30 s; a deletion takes as long as there is something to delete."""
    organization = f"/organizations/{tenant.organization_id}"
    page = await served.open(f"{organization}/settings", clock.now())
    await page.clock.install()
    for path, text in (("settings", ""), (f"projects/{tenant.project_id}/delete", "Waiting for the service…")):
        await page.goto(f"{organization}/{path}")
        await page.evaluate(
            "document.querySelector('main form[method=post]')"
            ".dispatchEvent(new SubmitEvent('submit', { bubbles: true, cancelable: true }))"
        )
        await page.clock.fast_forward(1_000)
        await expect(page.locator("#awaited")).to_have_text("Waiting for the service…")
        await page.clock.fast_forward(30_000)
        await expect(page.locator("#awaited")).to_have_text(text)
