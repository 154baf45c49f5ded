"""The dates of a campaign in a browser, which shows them in the time zone of the device."""

import pytest
from console.browser.conftest import ServedConsole
from playwright.async_api import expect
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

pytestmark = pytest.mark.xdist_group("browser")


async def test_a_campaign_that_is_renamed_keeps_its_dates(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    """The clocks of Paris show 02:30 twice that night."""
    dates = {"starts_at": "0999-06-21T07:30:00.000Z", "ends_at": "2027-10-31T01:30:15.250Z"}
    campaign = await tenant.make_campaign(**dates)
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/campaigns/{campaign['id']}"
    page = await served.open(path, clock.now(), timezone_id="Europe/Paris")
    assert (await page.input_value("#field-starts_at")).startswith("0999-06-21T07:")
    assert await page.input_value("#field-ends_at") == "2027-10-31T02:30:15.25"

    await page.fill("#field-name", "Late")
    await page.click("text=Save")

    await expect(page.locator(".notice[role=status]")).to_have_text("The campaign was changed.")
    answer = await tenant.api.get(f"/v1/campaigns/{campaign['id']}/summary", params=tenant.query)
    assert {name: answer.json["campaign"][name] for name in ("name", *dates)} == {"name": "Late", **dates}
