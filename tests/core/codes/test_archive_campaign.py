"""`POST /v1/campaigns/{campaign_id}/archive`: nothing more is issued, and issued Codes stay active."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_tenant

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


@pytest.mark.parametrize("campaign_id", ["cmp_" + "A" * 22, "cmp_", "x", "cmp_%00"])
async def test_an_unknown_campaign_is_not_found(tenant: Tenant, campaign_id: str) -> None:
    answer = await archive(tenant, campaign_id)
    assert (answer.status, answer.code) == (404, "campaign_not_found")


async def test_a_campaign_of_another_organisation_is_not_found(api: Api, tenant: Tenant) -> None:
    """Both organisations belong to the caller."""
    other = await make_tenant(api)
    campaign = await other.make_campaign()
    answer = await archive(tenant, campaign)
    assert (answer.status, answer.code) == (404, "campaign_not_found")
    assert await stored(other) == [campaign]


async def test_owners_and_administrators_may_and_need_no_second_factor(people: People, rival: Rival) -> None:
    tenant = await people.tenant_of("alice")
    for role in ("admin", "member", "billing"):
        await tenant.make_member(rival, role, role)
    for subject_id, outcome in (
        ("member", "forbidden"),
        ("billing", "forbidden"),
        ("mallory", "organization_not_found"),
        ("alice", 200),
        ("admin", 200),
    ):
        campaign = await tenant.make_campaign(subject_id)
        caller = Tenant(people.person(subject_id, acr="1"), tenant.organization_id, tenant.project_id)
        answer = await archive(caller, campaign)
        assert outcome in {answer.status, answer.json.get("code")}, (subject_id, answer.body)


async def test_a_server_key_may_not_archive(tenant: Tenant) -> None:
    """It may stop a campaign in an emergency; archiving is a person's decision."""
    campaign = await tenant.make_campaign()
    server = tenant.with_key(await tenant.make_key())
    answer = await archive(server, campaign)
    assert (answer.status, answer.code) == (403, "user_token_required")


async def test_a_caller_who_is_demoted_meanwhile_archives_nothing(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    async with rival.committing("UPDATE members SET role = 'member'"):
        archiving = await rival.while_waiting(archive(tenant, campaign))
    assert ((await archiving).status, (await archiving).code) == (403, "forbidden")
    assert await stored(tenant) == [campaign]


@pytest.mark.parametrize("table", ["campaigns", "audit_entries"])
async def test_an_archive_cut_before_its_commit_changes_nothing(tenant: Tenant, rival: Rival, table: str) -> None:
    campaign = await tenant.make_campaign()
    async with rival.holding(f"LOCK TABLE {table} IN SHARE MODE"):
        archiving = await rival.while_waiting(archive(tenant, campaign))
        await rival.kill_waiting_sessions()
        answer = await archiving
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await stored(tenant) == [campaign]
    assert (await archive(tenant, campaign)).json["status"] == "archived"
