"""A dialog under what people do to it: a double click, the back button, an ended session, two tabs, and no script."""

import pytest
from console.browser.conftest import ServedConsole
from playwright.async_api import Page, expect
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret
from support.tenancy.tenant import Tenant

from soundmark.console.session import Session

pytestmark = pytest.mark.xdist_group("browser")

HOSTILE = "<img src=x onerror=alert(1)>{{ 7 * 7 }}"


async def open_dialog(page: Page, name: str) -> None:
    await page.get_by_role("link", name="Create an organisation").click()
    await page.get_by_role("dialog").get_by_label("Name").fill(name)


def count_creations(served: ServedConsole) -> int:
    return sum((each.method, each.url.path) == ("POST", "/v1/organizations") for each in served.client.core.calls)


@pytest.mark.usefixtures("tenant")
async def test_a_double_click_in_a_dialog_creates_once_and_going_back_shows_it_closed(
    served: ServedConsole, clock: FakeClock
) -> None:
    page = await served.open("/organizations", clock.now())
    await open_dialog(page, HOSTILE)

    await page.get_by_role("dialog").get_by_role("button", name="Create an organisation").dblclick()

    await page.wait_for_url("**/projects*")
    assert count_creations(served) == 1
    assert HOSTILE in await page.inner_text("main")
    await expect(page.locator("main img")).to_have_count(0)
    await page.go_back()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Organisations")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await open_dialog(page, "Radio Südwest")  # It opens again.
    await page.get_by_role("dialog").get_by_role("button", name="Create an organisation").click()
    await page.wait_for_url("**/projects*")
    assert count_creations(served) == 2


@pytest.mark.usefixtures("tenant")
async def test_what_is_typed_in_a_dialog_is_kept_while_another_tab_signs_out(
    served: ServedConsole, clock: FakeClock
) -> None:
    served.browsing.tolerate("status of 401")
    page = await served.open("/organizations", clock.now())
    await open_dialog(page, "Radio Südwest")
    tab = await page.context.new_page()
    await tab.goto("/organizations")
    await tab.locator("details.menu > summary", has_text="operator@localhost").click()
    await tab.get_by_role("button", name="Sign out").click()
    await expect(tab.get_by_role("heading", level=1)).to_have_text("You are signed out")

    await page.get_by_role("dialog").get_by_role("button", name="Create an organisation").click()

    await expect(page.locator("#trouble")).to_contain_text("Your session has ended")
    assert count_creations(served) == 0
    another = Session(
        "operator", "operator", "operator@localhost", "another-token", clock.now(), has_second_factor=True
    )
    served.client.sign_in(another)
    cookies = [(each.name, str(each.value)) for each in served.client.cookies.jar]
    await page.context.add_cookies([{"name": name, "value": value, "url": served.url} for name, value in cookies])
    await page.goto("/organizations")
    await expect(page.get_by_role("main").get_by_label("Name")).to_have_value("Radio Südwest")


async def test_a_dialog_is_a_page_without_a_script(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    at = f"/organizations/{tenant.organization_id}"
    project = f"{at}/projects/{tenant.project_id}"
    await tenant.make_campaign()
    page = await served.open("/organizations", clock.now(), java_script_enabled=False)
    for path, act in (
        ("/organizations", "Create an organisation"),
        (f"{at}/projects", "Create a project"),
        (f"{project}/campaigns", "Create a campaign"),
    ):
        await page.goto(path)
        await page.get_by_role("link", name=act).click()
        name = page.get_by_role("main").get_by_label("Name")
        await expect(name).to_be_visible()
        await name.fill(HOSTILE)
        await page.get_by_role("main").get_by_role("button", name=act).click()
        await expect(page.get_by_role("main").first).to_contain_text(HOSTILE)


@pytest.mark.parametrize("has_script", [True, False])
async def test_a_preset_keeps_what_was_typed_and_enter_creates_the_key(
    served: ServedConsole, tenant: Tenant, clock: FakeClock, *, has_script: bool
) -> None:
    await tenant.make_key()
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/api-keys"
    page = await served.open(path, clock.now(), java_script_enabled=has_script)
    await page.get_by_role("link", name="Create an API key").click()
    await expect(page.get_by_role("dialog")).to_have_count(int(has_script))
    await page.get_by_label("Name").fill("Playout PC")

    await page.get_by_role("button", name="Issuing Codes").click()

    name = page.get_by_role("main").get_by_label("Name")
    await expect(name).to_have_value("Playout PC")
    await expect(page.get_by_role("checkbox", checked=True)).to_have_count(2)
    await page.get_by_label("read reports").check()
    await name.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("The API key was created")
    newest = (await tenant.api.get("/v1/api-keys", params=tenant.in_project)).json["data"][0]
    assert (newest["name"], newest["scopes"]) == ("Playout PC", ["audience:read", "codes:read", "codes:write"])
    remember_secret(await page.locator("#secret").input_value())
