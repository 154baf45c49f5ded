"""The form of a webhook endpoint in a browser: the search among the types of events."""

import asyncio
from typing import Final

import pytest
from console.browser.conftest import ServedConsole
from console.browser.test_figures import SHIFT
from playwright.async_api import Route, expect
from support.browser.accessibility import assert_no_page_breaks_a_rule
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret
from support.tenancy.tenant import Tenant

from soundmark.console.event_types import EVENT_TYPES

pytestmark = pytest.mark.xdist_group("browser")

PAINTED: Final = """() => new Promise((resolve) => {
  new PerformanceObserver(() => resolve(true)).observe({ type: "paint", buffered: true });
})"""


def new_path(tenant: Tenant) -> str:
    return f"/organizations/{tenant.organization_id}/webhooks/new"


async def test_no_page_breaks_a_rule(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    endpoint = await tenant.make_webhook_endpoint(event_types=["code.issued"])
    paths = [f"{new_path(tenant)}?event_type=code.issued", f"/organizations/{tenant.organization_id}/webhooks"]
    paths.append(f"{paths[-1]}/{endpoint['id']}")
    await assert_no_page_breaks_a_rule(served.opener(clock.now()), paths)


async def test_the_search_has_its_room_before_its_script_is_there(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    page = await served.open(f"/organizations/{tenant.organization_id}", clock.now())
    came = asyncio.Event()

    async def come_late(route: Route) -> None:
        await came.wait()
        await route.continue_()

    await page.route("**/event_search.js*", come_late)
    await page.goto(f"{served.url}{new_path(tenant)}?event_type=code.issued", wait_until="commit")
    await page.evaluate(PAINTED)
    await expect(page.get_by_label("Search the events")).to_be_hidden()
    came.set()
    await expect(page.get_by_label("Search the events")).to_be_visible()
    assert await page.evaluate(SHIFT) == 0


async def test_the_search_narrows_the_events_and_keeps_what_is_chosen(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    page = await served.open(f"{new_path(tenant)}?event_type=code.issued", clock.now())
    search, status = page.get_by_label("Search the events"), page.locator("#event-search [role=status]")
    shown = page.locator("#field-event_types label:has([name=event_types]):visible")
    whole = len(EVENT_TYPES)
    await expect(status).to_have_text(f"Shown: {whole} of {whole}. Chosen: 1.")

    await search.fill("INVITATION. acc")
    await expect(shown).to_have_count(1)
    await expect(page.locator(".event-group:visible")).to_have_count(1)
    await expect(status).to_have_text(f"Shown: 1 of {whole}. Chosen: 1.")
    await page.get_by_label("invitation.accepted").check()
    await expect(status).to_have_text(f"Shown: 1 of {whole}. Chosen: 2.")
    await search.fill("api keys")
    names = await shown.all_inner_texts()
    await search.fill("nothing like this")
    await expect(shown).to_have_count(0)
    await search.press("Enter")
    assert page.url.endswith("/new?event_type=code.issued"), "Enter in the search sends nothing"
    await page.get_by_label("Address").fill("https://consumer.example.org/webhooks")
    await page.get_by_role("button", name="Create the endpoint").click()

    await expect(page.locator("#secret")).to_be_visible()
    remember_secret(await page.input_value("#secret"))
    assert names, "the name of a group finds all of it"
    assert all("api_key." in each for each in names)
    [endpoint] = (await tenant.api.get("/v1/webhook-endpoints", params=tenant.query)).json["data"]
    assert sorted(endpoint["event_types"]) == ["code.issued", "invitation.accepted"]


async def test_without_a_script_every_event_is_there(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    page = await served.open(f"{new_path(tenant)}?event_type=code.issued", clock.now(), java_script_enabled=False)

    await expect(page.get_by_label("Search the events")).to_be_hidden()
    await expect(page.locator("[name=event_types]:visible")).to_have_count(len(EVENT_TYPES))
