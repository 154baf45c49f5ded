"""How many acts the main tasks take with a keyboard, from the page to which signing in leads."""

from dataclasses import dataclass

import pytest
from console.browser.conftest import ServedConsole
from playwright.async_api import Page, expect
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

pytestmark = pytest.mark.xdist_group("browser")

ADDRESS = "example.org/tonight"
_TABS_MAX = 20


@dataclass
class Keyboard:
    """A person's keys on a page; what is typed into a field counts as nothing, and each other key as one."""

    page: Page
    pressed: int = 0

    async def press(self, key: str) -> None:
        self.pressed += 1
        await self.page.keyboard.press(key)

    async def go_to(self, selector: str) -> None:
        """Press Tab until the focus is on the first element that the selector finds."""
        is_there = "selector => document.activeElement === document.querySelector(selector)"
        for _ in range(_TABS_MAX):
            if await self.page.evaluate(is_there, selector):
                return
            await self.press("Tab")
        raise AssertionError(f"{selector} is not among the first {_TABS_MAX} places")

    async def skip_to_content(self) -> None:
        await self.press("Tab")
        await self.press("Enter")


async def sign_in(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> Keyboard:
    """Return the keyboard on the page to which signing in leads: the home page of the only organisation."""
    page = await served.open("/", clock.now())
    assert page.url == f"{served.url}/organizations/{tenant.organization_id}"
    return Keyboard(page)


async def test_a_code_is_issued_for_a_campaign_in_twelve_keystrokes_beside_its_address(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    await tenant.make_code()
    campaign = await tenant.make_campaign()
    keyboard = await sign_in(served, tenant, clock)

    await keyboard.skip_to_content()
    await keyboard.go_to(f"main a[href$='/codes/issue?campaign_id={campaign['id']}']")
    await keyboard.press("Enter")
    await expect(keyboard.page.locator("#field-url")).to_be_focused()
    await keyboard.page.keyboard.type(ADDRESS)
    await keyboard.press("Enter")
    await keyboard.page.wait_for_url("**/codes/xr_*")

    assert keyboard.pressed <= 12
    newest, _ = await tenant.list_codes()
    assert newest["campaign_id"] == campaign["id"]
    await expect(keyboard.page.locator("h1")).to_have_text(ADDRESS)


async def test_a_campaign_is_stopped_in_four_acts(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    """An act is a link or a button that one goes to and presses."""
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])
    keyboard = await sign_in(served, tenant, clock)
    acts = [
        (".skip", "**#content"),
        ("main a[href$='/stop']", "**/stop"),
        (".skip", "**/stop#content"),
        ("main form button", f"**/campaigns/{campaign['id']}*"),
    ]

    for selector, url in acts:
        await keyboard.go_to(selector)
        await keyboard.press("Enter")
        await keyboard.page.wait_for_url(url)

    assert len(acts) <= 4
    await expect(keyboard.page.locator(".notice[role=status]")).to_have_text("Tonight was stopped: 1 Code was revoked.")


async def test_a_code_is_found_by_its_address_in_three_acts(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    """One opens the search by its key, types the address, and presses Enter."""
    for number in range(3):
        resource = {"url": f"https://example.org/programme/{number}"}
        code = await tenant.make_code(intent={"type": "link", "action": "open", "resource": resource})
    keyboard = await sign_in(served, tenant, clock)

    await keyboard.press("/")
    dialog = keyboard.page.get_by_role("dialog")
    await expect(dialog.get_by_label("Name, address or id")).to_be_focused()
    await keyboard.page.keyboard.type("example.org/programme/2")
    await expect(dialog.get_by_role("status")).to_have_text("1 result")
    await keyboard.press("Enter")

    await keyboard.page.wait_for_url(f"**/codes/{code['xr_id']}")
    assert keyboard.pressed + len(["the address is typed"]) <= 3
