"""Campaigns, API keys, members, invitations and the audit log in a browser: axe, scripts and the back button."""

import pytest
from console.browser.conftest import ServedConsole
from playwright.async_api import expect
from support.browser.accessibility import assert_no_page_breaks_a_rule
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret
from support.tenancy.tenant import Tenant

pytestmark = pytest.mark.xdist_group("browser")


def project_path(tenant: Tenant) -> str:
    return f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"


async def test_no_page_breaks_a_rule(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    campaign = await tenant.make_campaign(starts_at="2026-01-01T00:00:00Z", ends_at="2037-01-01T00:00:00Z")
    await tenant.make_code(campaign_id=campaign["id"])
    key = await tenant.make_key()
    await tenant.make_invitation()
    organization, project = f"/organizations/{tenant.organization_id}", project_path(tenant)
    paths = [
        f"{project}/campaigns",
        f"{project}/campaigns/{campaign['id']}",
        f"{project}/campaigns/{campaign['id']}/stop",
        f"{project}/campaigns/{campaign['id']}/archive",
        f"{project}/api-keys",
        f"{project}/api-keys/{key['id']}/rotate",
        f"{project}/api-keys/{key['id']}/revoke",
        f"{organization}/members",
        f"{organization}/members/remove?subject_id=operator",
        f"{organization}/members/invitations",
        "/invitations/accept",
        f"{organization}/audit-log?actor=operator",
        f"{organization}/audit-log/verification",
    ]
    await assert_no_page_breaks_a_rule(served.opener(clock.now()), paths)


async def test_a_campaign_is_stopped_and_the_back_button_offers_no_second_stop(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    campaign = await tenant.make_campaign()
    code = await tenant.make_code(campaign_id=campaign["id"])
    page = await served.open(f"{project_path(tenant)}/campaigns/{campaign['id']}", clock.now())
    await page.focus("a.danger")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/stop")
    assert "1 active Code will be revoked." in await page.inner_text("main")
    assert (await tenant.api.resolve(code["broadcast_token"])).status == 200

    await page.focus("main form button")
    await page.keyboard.press("Enter")

    await page.wait_for_selector(".notice[role=status]")
    assert await page.inner_text(".notice[role=status]") == "Tonight was stopped: 1 Code was revoked."
    assert (await tenant.api.resolve(code["broadcast_token"])).code == "code_unavailable"
    await page.go_back()
    assert page.url.endswith("/stop")
    assert "There is nothing left to stop." in await page.inner_text("main")
    assert await page.locator("main form").count() == 0


async def test_a_schedule_is_typed_and_shown_in_the_zone_of_the_device(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    page = await served.open(f"{project_path(tenant)}/campaigns", clock.now(), timezone_id="Africa/Tunis")
    await page.fill("#field-name", "Tonight")
    await page.fill("#field-starts_at", "2037-06-21T09:30")

    await page.click("main form button")

    await page.wait_for_url("**/campaigns/cmp_*")
    [campaign] = (await tenant.api.get("/v1/campaigns", params=tenant.in_project)).json["data"]
    assert campaign["starts_at"] == "2037-06-21T08:30:00.000Z"
    assert await page.input_value("#field-starts_at") == "2037-06-21T09:30"
    await page.fill("#field-name", "Tomorrow")
    await page.click("main form button >> nth=0")
    await page.wait_for_selector(".notice[role=status]")
    [campaign] = (await tenant.api.get("/v1/campaigns", params=tenant.in_project)).json["data"]
    assert (campaign["name"], campaign["starts_at"]) == ("Tomorrow", "2037-06-21T08:30:00.000Z")


async def test_a_secret_is_copied(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    page = await served.open(f"{project_path(tenant)}/api-keys", clock.now())
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.url)
    await page.check("input[value='codes:read']")
    await page.get_by_role("button", name="Create an API key").click()
    secret = await page.input_value("#secret")
    remember_secret(secret)

    await page.click(".secret button")

    await page.wait_for_selector(".secret button >> text=Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == secret


async def test_a_secret_is_copied_without_the_api_that_browsers_keep_from_plain_http(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    """Loopback counts as secure, so the API is taken away."""
    page = await served.open(f"{project_path(tenant)}/api-keys", clock.now())
    await page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    await page.reload()
    await page.check("input[value='codes:read']")
    await page.get_by_role("button", name="Create an API key").click()
    secret = await page.input_value("#secret")
    remember_secret(secret)

    await page.click(".secret button")

    await expect(page.locator(".secret button", has_text="Copied")).to_be_focused()
    await page.goto(f"{project_path(tenant)}/codes")
    await page.press("[name=address_prefix]", "Control+v")
    assert await page.input_value("[name=address_prefix]") == secret


async def test_the_link_of_an_invitation_fills_the_form_and_tells_no_server(
    served: ServedConsole, tenant: Tenant
) -> None:
    invitation = await tenant.make_invitation(email="operator@localhost.test")
    stranger = await served.browsing.open_page(base_url=served.url)
    requested: list[str] = []
    stranger.on("request", lambda request: requested.append(request.url + str(request.headers)))

    await stranger.goto(f"/invitations/accept#token={invitation['secret']}")

    await expect(stranger.locator("#field-token")).to_have_value(invitation["secret"])
    assert stranger.url == f"{served.url}/invitations/accept", "the token is in no address that could be passed on"
    assert requested
    assert not [each for each in requested if invitation["secret"] in each]
