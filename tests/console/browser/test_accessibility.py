"""The pages of organisations and projects in a browser: the rules of axe, the keyboard, and the focus."""

import pytest
from console.browser.conftest import ServedConsole
from support.browser.accessibility import assert_no_page_breaks_a_rule
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

pytestmark = pytest.mark.xdist_group("browser")

ORGANIZATION = "/organizations/{organization_id}"
PROJECT = ORGANIZATION + "/projects/{project_id}"
PATHS = [
    *("/organizations", ORGANIZATION, ORGANIZATION + "/settings", ORGANIZATION + "/delete", ORGANIZATION + "/projects"),
    *(PROJECT, PROJECT + "/settings", PROJECT + "/allowed-hosts", PROJECT + "/delete"),
]


async def test_no_page_breaks_a_rule(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    ids = {"organization_id": tenant.organization_id, "project_id": tenant.project_id}
    await assert_no_page_breaks_a_rule(served.opener(clock.now()), [path.format(**ids) for path in PATHS])


async def test_an_organization_is_created_with_the_keyboard_alone(served: ServedConsole, clock: FakeClock) -> None:
    page = await served.open("/organizations", clock.now())
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.className") == "skip"
    await page.keyboard.press("Enter")
    for _ in range(3):  # Past the link to accept an invitation.
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.name") == "name":
            break
    assert await page.evaluate("document.activeElement.name") == "name"

    await page.keyboard.type("Radio Nordlicht")
    await page.keyboard.press("Enter")

    await page.wait_for_url("**/projects*")
    assert "Radio Nordlicht was created." in await page.inner_text("main")


async def test_the_focus_goes_to_what_is_wrong(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    served.browsing.tolerate("status of 409")
    page = await served.open(f"/organizations/{tenant.organization_id}/projects?new=1", clock.now())

    await page.fill("#field-name", "Morning show")
    await page.click("main form button")

    await page.wait_for_selector("#trouble")
    assert await page.evaluate("document.activeElement.id") == "trouble"
    assert await page.input_value("#field-name") == "Morning show"
