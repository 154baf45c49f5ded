"""Archiving a campaign."""

from support.console.campaign_pages import path_of, read_campaign
from support.console.client import ConsoleClient
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant


async def test_a_campaign_is_archived_after_a_page_that_shows_it(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])
    path = path_of(tenant, campaign["id"])
    assert not (await operator.get(path)).find_all(f".//form[@action='{path}/archive']"), "it cannot be undone"

    asked = await operator.get(f"{path}/archive")

    assert asked.heading == "Archive Tonight"
    assert asked.find(".//td[@data-count='active']").text == "1"
    assert "This cannot be undone." in asked.text
    assert await read_campaign(tenant, campaign["id"]) == campaign
    await operator.submit(f"{path}/archive")
    again = await operator.get(f"{path}/archive")
    assert "This campaign is already archived." in again.text
    assert not again.find_all(".//main//button")


async def test_an_archived_campaign_cannot_be_changed(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    path = path_of(tenant, campaign["id"])

    page = await operator.follow(await operator.submit(f"{path}/archive"))

    assert "Tonight was archived." in page.text
    assert not page.find_all(".//input[@name='name']")
    assert (await operator.submit(path, {"name": "Other", "shown_name": "Tonight"})).trouble == "campaign_archived"
    assert "Tonight was archived." in (await operator.follow(await operator.submit(f"{path}/archive"))).text


async def test_an_archived_campaign_says_that_no_code_can_be_issued(
    operator: ConsoleClient, tenant: Tenant, clock: FakeClock
) -> None:
    campaign = await tenant.make_campaign()
    path = path_of(tenant, campaign["id"])
    await operator.submit(f"{path}/archive")

    for each in (path_of(tenant), path, f"{path}/stop"):
        page = await operator.get(each)
        assert "no longer: the campaign is archived" in page.text
        assert "at any time" not in page.text
    french = operator.other(language="fr").sign_in_as_operator(clock.now())
    assert "plus aucune : la campagne est archivée" in (await french.get(path)).text
