"""The frame of the pages in a browser: its parts, its keys, and what it does without a script."""

import asyncio
import re

import pytest
from console.browser.conftest import ServedConsole
from playwright.async_api import Page, Route, expect
from support.browser.accessibility import (
    NARROW,
    assert_no_page_breaks_a_rule,
    find_broken_on_screens,
    find_broken_rules,
)
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

pytestmark = pytest.mark.xdist_group("browser")

_BELOW_LABEL = """[...document.querySelectorAll(".cards td[data-label] > *")]
  .filter((each) => each.getBoundingClientRect().left < each.parentElement.getBoundingClientRect().left + 100)
  .map((each) => each.outerHTML)"""


async def test_the_parts_and_the_search_break_no_rule(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    await tenant.make_campaign("Summer")
    within = f"organization_id={tenant.organization_id}&project_id={tenant.project_id}"
    await assert_no_page_breaks_a_rule(served.opener(clock.now()), ["/design", f"/search?{within}&q=summer"])


async def test_open_menus_and_dialogs_break_no_rule(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    page = await served.open("/design", clock.now())
    await page.get_by_role("link", name="Open a dialog").click()
    await expect(page.get_by_role("dialog", name="A dialog")).to_be_visible()
    assert await find_broken_on_screens(page) == {}
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)

    await page.goto(f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}")
    menus = page.locator("details.menu > summary")
    for menu in await menus.all():
        await menu.click()
        assert await find_broken_rules(page) == {}
        await page.keyboard.press("Escape")
        await expect(page.locator("details.menu[open]")).to_have_count(0)
        assert await page.evaluate("document.activeElement.tagName") == "SUMMARY", "the focus stays in its place"
    await menus.nth(1).click()
    await menus.nth(0).click()
    await expect(page.locator("details.menu[open]")).to_have_count(1)


async def test_rows_are_cards_on_a_narrow_screen_with_their_acts_in_sight(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    await tenant.make_key(name="Playout")
    await tenant.make_campaign("Summer", ends_at="2037-01-01T00:00:00Z")
    at = f"/organizations/{tenant.organization_id}"
    page = await served.open(f"{at}/members", clock.now(), viewport={"width": 390, "height": 780})
    for path, act in (
        (f"{at}/projects/{tenant.project_id}/api-keys", "Revoke Playout"),
        (f"{at}/projects/{tenant.project_id}/campaigns", "Issue Codes Summer"),
        (f"{at}/members", "Leave the organisation operator@localhost"),
    ):
        await page.goto(path)
        box = await page.get_by_role("link", name=act).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert await page.evaluate(_BELOW_LABEL) == [], "a value stands beside its label, however many lines it has"
    assert await page.evaluate("getComputedStyle(document.querySelector('.cards td'), '::before').content") == '"Role"'


async def test_the_navigation_is_a_menu_on_a_narrow_screen_even_without_a_script(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    path = f"/organizations/{tenant.organization_id}"
    page = await served.open(path, clock.now(), viewport=NARROW, java_script_enabled=False)
    members = page.get_by_role("navigation", name="Areas").get_by_role("link", name="Members")
    await expect(members).to_be_hidden()
    await page.locator("nav summary", has_text="Menu").click()
    await members.click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Members")

    await page.set_viewport_size({"width": 1280, "height": 800})
    await page.goto(path)
    await expect(members).to_be_visible()
    await page.get_by_role("link", name="Search").click()
    await page.get_by_label("Name, address or id").fill("webh")
    await page.keyboard.press("Enter")
    await page.get_by_role("main").get_by_role("link", name="Webhooks").click()
    await expect(page).to_have_url(re.compile("/webhooks$"))


async def open_palette(page: Page, key: str) -> None:
    await page.keyboard.press(key)
    await expect(
        page.get_by_role("dialog", name="Search", exact=True).get_by_label("Name, address or id")
    ).to_be_focused()


async def test_the_palette_leads_to_a_campaign_with_the_keyboard_alone(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    await tenant.make_campaign("Summer festival")
    code = await tenant.make_code()
    page = await served.open(f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}", clock.now())
    for key, text, path in (
        ("/", "festiv", "/campaigns/cmp_"),
        ("Control+k", code["xr_id"], f"/codes/{code['xr_id']}"),
    ):
        await open_palette(page, key)
        await page.keyboard.type(text)
        await expect(page.get_by_role("dialog").get_by_role("status")).to_have_text("1 result")
        if key == "/":
            assert await find_broken_on_screens(page) == {}
        await page.keyboard.press("Enter")
        await page.wait_for_url(re.compile(path))


async def test_enter_opens_nothing_that_was_found_for_an_earlier_text(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    await tenant.make_campaign("Summer festival")
    page = await served.open(f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}", clock.now())
    await open_palette(page, "/")
    await page.keyboard.type("festiv")
    await expect(page.get_by_role("dialog").get_by_role("status")).to_have_text("1 result")
    await page.route("**/search?*", lambda route: route.continue_() if route.request.is_navigation_request() else None)

    await page.keyboard.type("x")
    await page.keyboard.press("Enter")

    await page.wait_for_url(re.compile(r"/search\?.*q=festivx"))


async def test_the_palette_keeps_out_of_the_way(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    page = await served.open(f"/organizations/{tenant.organization_id}/settings", clock.now())
    await page.fill("#field-name", "")
    await page.type("#field-name", "a/b")
    assert await page.input_value("#field-name") == "a/b"
    await page.locator("h1").click()

    await open_palette(page, "/")
    await page.get_by_label("The key / opens the search").uncheck()
    await page.keyboard.press("Escape")
    await page.keyboard.press("/")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await open_palette(page, "Control+k")
    await page.context.clear_cookies()
    await page.keyboard.type("x")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to Soundmark"), "the session has ended"


async def test_a_palette_that_was_closed_leaves_the_page_as_it_is(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    served.browsing.tolerate("ERR_FAILED")
    page = await served.open(f"/organizations/{tenant.organization_id}/settings", clock.now())
    await page.fill("#field-name", "Half typed")
    await page.locator("h1").click()
    await open_palette(page, "/")
    asked: asyncio.Queue[Route] = asyncio.Queue()
    await page.route("**/search?*", asked.put)
    await page.keyboard.type("x")
    search = await asked.get()
    for _ in ("it empties the field", "it closes the dialog"):
        await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)

    async with page.expect_event("requestfailed"):
        await search.abort()

    await page.evaluate("void setTimeout(() => fetch('/search?q=next').catch(() => null), 300)")
    async with asyncio.timeout(10):
        assert (await asked.get()).request.url.endswith("q=next"), "the search is neither continued nor opened"
    await expect(page.locator("#field-name")).to_have_value("Half typed")


async def test_a_palette_that_the_focus_leaves_is_closed(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    page = await served.open(f"/organizations/{tenant.organization_id}/settings", clock.now())
    await open_palette(page, "/")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.locator("#field-name").focus()
    await expect(page.get_by_role("dialog")).to_have_count(0)

    await open_palette(page, "Control+k")
    await page.mouse.click(5, 700)
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_colours_of_the_system_and_reduced_motion_keep_every_part(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    page = await served.open("/design", clock.now(), forced_colors="active", reduced_motion="reduce")
    assert await page.evaluate("getComputedStyle(document.querySelector('.skeleton')).animationName") == "none"
    width = await page.evaluate("getComputedStyle(document.querySelector('main button')).borderTopWidth")
    assert width == "1px", "a button is seen by its border"
    await page.goto(f"/organizations/{tenant.organization_id}/members")
    current = page.get_by_role("navigation", name="Areas").get_by_role("link", name="Members")
    assert await current.evaluate("each => getComputedStyle(each).outlineStyle") == "solid"


async def test_times_are_in_the_zone_of_the_person_and_ids_are_copied_whole(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    page = await served.open("/organizations", clock.now(), timezone_id="Africa/Tunis")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.url)
    shown = page.locator("tbody time")
    assert re.fullmatch(r"\d+ \w+ \d{4}, \d\d:\d\d", await shown.inner_text())
    assert (await shown.get_attribute("title") or "").endswith(" UTC")
    await expect(page.locator("footer")).to_contain_text("Times are in Africa/Tunis.")

    await page.get_by_role("button", name=f"Copy {tenant.organization_id}").click()

    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == tenant.organization_id


@pytest.mark.usefixtures("tenant")
async def test_an_organization_is_created_in_a_dialog_and_a_refusal_keeps_what_was_typed(
    served: ServedConsole, clock: FakeClock
) -> None:
    served.browsing.tolerate("status of 422")
    page = await served.open("/organizations", clock.now())
    await page.get_by_role("link", name="Create an organisation").click()
    dialog = page.get_by_role("dialog", name="Create an organisation")
    await dialog.get_by_label("Name").fill("x" * 121)
    await dialog.get_by_role("button", name="Create an organisation").click()
    await expect(page.locator("#trouble")).to_be_focused()
    assert await page.get_by_label("Name").input_value() == "x" * 121
    await page.get_by_label("Name").fill("Radio Nordlicht 2")
    await page.get_by_role("button", name="Create an organisation").click()
    await page.wait_for_url("**/projects*")
