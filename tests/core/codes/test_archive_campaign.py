"""`POST /v1/campaigns/{campaign_id}/archive`: nothing more is issued, and issued Codes stay active."""

import asyncio
from typing import Any

from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.kit.text.timestamps import format_timestamp


async def archive(tenant: Tenant, campaign: dict[str, Any] | str) -> Answer:
    campaign_id = campaign if isinstance(campaign, str) else campaign["id"]
    return await tenant.api.post(f"/v1/campaigns/{campaign_id}/archive", params=tenant.query)


async def stored(tenant: Tenant) -> Any:
    params = {**tenant.query, "project_id": tenant.project_id}
    return (await tenant.api.get("/v1/campaigns", params=params)).json["data"]


async def test_the_answer_is_the_campaign_archived_now(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    campaign, other = await tenant.make_campaign(), await tenant.make_campaign("Other")
    api.clock.advance(seconds=1.5)
    answer = await archive(tenant, campaign)
    now = format_timestamp(api.clock.now())
    assert (answer.status, answer.json) == (200, {**campaign, "status": "archived", "archived_at": now})
    listed = await stored(tenant)
    assert answer.json in listed
    assert other in listed
    expected = [("user operator", tenant.project_id, {"campaign_id": campaign["id"]})]
    assert await rival.audited("campaign.archived") == expected


async def test_no_code_is_issued_under_it_afterwards(api: Api, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    await archive(tenant, campaign)
    answer = await api.post("/v1/codes", json=tenant.code_body(campaign_id=campaign["id"]))
    assert (answer.status, answer.code) == (409, "campaign_archived")


async def test_codes_that_were_issued_stay_active(api: Api, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    code = await tenant.make_code(campaign_id=campaign["id"])
    await archive(tenant, campaign)
    assert (await api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)).json == code
    assert (await api.resolve(code["broadcast_token"])).status == 200


async def test_a_second_archive_changes_and_logs_nothing(api: Api, tenant: Tenant, rival: Rival) -> None:
    """The time is that of the first."""
    campaign = await tenant.make_campaign()
    first = await archive(tenant, campaign)
    api.clock.advance(seconds=5)
    again = await archive(tenant, campaign)
    assert (again.status, again.body) == (200, first.body)
    assert len(await rival.audited("campaign.archived")) == 1


async def test_a_stopped_campaign_is_archived_already(api: Api, tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    stopped = (await api.post(f"/v1/campaigns/{campaign['id']}/stop", params=tenant.query)).json["campaign"]
    api.clock.advance(seconds=5)
    assert (await archive(tenant, campaign)).json == stopped
    assert await rival.audited("campaign.archived") == []


async def test_two_at_once_are_one_archiving(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    campaign = await tenant.make_campaign()
    async with rival.holding("SELECT 1 FROM campaigns FOR UPDATE"):
        one, two = asyncio.create_task(archive(tenant, campaign)), asyncio.create_task(archive(tenant, campaign))
        await rival.until_someone_waits(2)
        api.clock.advance(seconds=1)
    assert (await one).body == (await two).body
    assert (await one).json["archived_at"] == format_timestamp(api.clock.now())
    assert len(await rival.audited("campaign.archived")) == 1


async def test_an_issuance_under_way_finishes_first(api: Api, tenant: Tenant, rival: Rival) -> None:
    """An issuance that holds the campaign finishes; one that asks after the archiving is refused."""
    campaign = await tenant.make_campaign()
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        issuing = await rival.while_waiting(api.post("/v1/codes", json=tenant.code_body(campaign_id=campaign["id"])))
        archiving = asyncio.create_task(archive(tenant, campaign))
        await rival.until_someone_waits(2)
    assert ((await issuing).status, (await archiving).json["status"]) == (201, "archived")
