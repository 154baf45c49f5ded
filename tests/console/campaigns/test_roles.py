"""What each role, with and without a second factor, sees of campaigns and may do to them."""

from support.console.campaign_pages import path_of, read_campaign
from support.console.client import ConsoleClient
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People


async def test_a_member_sees_campaigns_and_may_change_nothing(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    await tenant.make_member(rival, "reader", "member")
    campaign = await tenant.make_campaign()
    visitors.sign_in_as(people, "reader", clock.now())
    path = path_of(tenant, campaign["id"])
    for page in (await visitors.get(path), await visitors.get(path_of(tenant))):
        assert page.status == 200
        assert not page.find_all(".//main//form"), "what they may not do is not offered"
        assert "Emergency stop" not in page.text

    created = await visitors.submit(path_of(tenant), {"name": "Mine"})
    changed = await visitors.submit(path, {"name": "Mine", "shown_name": "Tonight"})
    archived = await visitors.submit(f"{path}/archive")
    stopped = await visitors.submit(f"{path}/stop")

    for page in (created, changed, archived, stopped):
        assert (page.status, page.trouble) == (403, "forbidden")
    assert created.value("name") == changed.value("name") == "Mine"
    assert await read_campaign(tenant, campaign["id"]) == campaign


async def test_nobody_is_led_to_a_campaign_whose_page_is_refused(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    """It counts Codes, which somebody who only pays may not read; the list and the project name it all the same."""
    tenant = await people.tenant_of("owner")
    campaign = await tenant.make_campaign("Summer")
    path = path_of(tenant, campaign["id"])
    search = f"/search?organization_id={tenant.organization_id}&project_id={tenant.project_id}&q=Summer"
    for role, status in (("member", 200), ("billing", 403)):
        await people.member(tenant, rival, role, role)
        visitors.sign_in_as(people, role, clock.now())
        assert (await visitors.get(path)).status == status, role
        for place in (path_of(tenant), path_of(tenant).removesuffix("/campaigns"), search):
            page = await visitors.get(place)
            links = [each for each in page.find_all(".//main//a") if each.get("href") == path]
            assert bool(links) == (status == 200), (role, place)
            assert ("Summer" in page.text) == (bool(links) or place != search)


async def test_a_change_without_a_second_factor_asks_for_it_and_changes_nothing(
    visitors: ConsoleClient, people: People, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    campaign = await tenant.make_campaign()
    path = path_of(tenant, campaign["id"])
    visitors.sign_in_as(people, "owner", clock.now(), acr="1", amr=["pwd"])

    page = await visitors.submit(path, {"name": "Late", "shown_name": "Tonight"})

    assert (page.status, page.trouble) == (403, "sign_in.second_factor_needed")
    assert await read_campaign(tenant, campaign["id"]) == campaign
    stronger = visitors.sign_in_as(people, "owner", clock.now())
    assert (await stronger.get(path)).value("name") == "Late", "what was typed is kept"


async def test_a_stop_needs_no_second_factor(visitors: ConsoleClient, people: People, clock: FakeClock) -> None:
    tenant = await people.tenant_of("owner")
    campaign = await tenant.make_campaign()
    visitors.sign_in_as(people, "owner", clock.now(), acr="1", amr=["pwd"])

    assert (await visitors.submit(f"{path_of(tenant, campaign['id'])}/stop")).status == 303
    assert (await read_campaign(tenant, campaign["id"]))["status"] == "archived"
