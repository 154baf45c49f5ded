"""The emergency stop of a campaign: what it will stop, and what it stopped."""

from support.console.campaign_pages import path_of, read_campaign
from support.console.client import ConsoleClient
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant


async def test_the_confirmation_shows_what_will_stop_and_changes_nothing(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    campaign = await tenant.make_campaign(ends_at="2037-09-23T04:00:00.000Z")
    for _ in range(2):
        await tenant.make_code(campaign_id=campaign["id"])

    page = await operator.get(f"{path_of(tenant, campaign['id'])}/stop")

    assert page.heading == "Stop Tonight"
    assert page.find(".//td[@data-count='active']").text == "2"
    assert "2 active Codes will be revoked." in page.text
    assert "until 23 Sept 2037, 04:00" in page.text
    assert page.headers["cache-control"] == "no-store", "the back button asks anew"
    assert (await read_campaign(tenant, campaign["id"]))["status"] == "active"


async def test_a_stop_says_what_it_stopped(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    codes = [await tenant.make_code(campaign_id=campaign["id"]) for _ in range(2)]

    page = await operator.follow(await operator.submit(f"{path_of(tenant, campaign['id'])}/stop"))

    assert "Tonight was stopped: 2 Codes were revoked." in page.text
    assert page.tiles["Active"] == "0"
    assert (await read_campaign(tenant, campaign["id"]))["status"] == "archived"
    for code in codes:
        assert (await tenant.api.resolve(code["broadcast_token"])).code == "code_unavailable"


async def test_the_back_button_after_a_stop_shows_that_nothing_is_left(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])
    path = f"{path_of(tenant, campaign['id'])}/stop"
    await operator.submit(path)

    page = await operator.get(path)

    assert "There is nothing left to stop." in page.text
    assert "without stopping it" not in page.text
    assert not page.find_all(".//main//button")
    summary = await operator.get(path_of(tenant, campaign["id"]))
    assert not [link for link in summary.find_all(".//a") if link.get("href", "").endswith("/stop")]


async def test_an_old_confirmation_that_is_sent_again_changes_nothing_and_says_so(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])
    path = f"{path_of(tenant, campaign['id'])}/stop"
    await operator.submit(path)
    before = await tenant.api.get(f"/v1/campaigns/{campaign['id']}/summary", params=tenant.query)

    page = await operator.follow(await operator.submit(path))

    assert "It had no active Codes left, so nothing was revoked." in page.text
    assert (await tenant.api.get(f"/v1/campaigns/{campaign['id']}/summary", params=tenant.query)).json == before.json


async def test_an_archived_campaign_whose_codes_work_can_still_be_stopped(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])
    path = path_of(tenant, campaign["id"])
    await operator.submit(f"{path}/archive")
    asked = await operator.get(f"{path}/stop")
    assert "1 active Code will be revoked." in asked.text
    assert "will be archived" not in asked.text

    assert "1 Code was revoked." in (await operator.follow(await operator.submit(f"{path}/stop"))).text


async def test_a_stop_that_finds_nobody_can_be_sent_again(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])
    path = f"{path_of(tenant, campaign['id'])}/stop"
    operator.core.lose(f"POST /v1/campaigns/{campaign['id']}/stop")

    page = await operator.submit(path)

    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert page.find(".//td[@data-count='active']").text == "1", "the page says that they still work"
    assert page.find_all(".//main//form//button")
    operator.core.recover()
    assert "1 Code was revoked." in (await operator.follow(await operator.submit(path))).text


async def test_a_stop_is_confirmed_in_french(operator: ConsoleClient, tenant: Tenant, clock: FakeClock) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])

    asked = await french.get(f"{path_of(tenant, campaign['id'])}/stop")
    stopped = await french.follow(await french.submit(f"{path_of(tenant, campaign['id'])}/stop"))

    assert "1 Code actuellement valide sera révoqué." in asked.text
    assert "Tonight a été arrêtée : 1 Code a été révoqué." in stopped.text
