"""`POST /v1/campaigns`: a name that is free in its project, and a schedule that begins before it ends."""

import asyncio
import re
from typing import Any

import pytest
from support.api.core_client import Answer, Api, pointers
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp

EARLIER, LATER = "2027-06-21T00:00:00.000Z", "2027-09-23T00:00:00.000Z"


async def create(tenant: Tenant, **changes: Any) -> Answer:
    return await tenant.api.post("/v1/campaigns", json=tenant.campaign_body(**changes))


async def names(rival: Rival) -> list[str]:
    return [name for (name,) in await rival.rows("SELECT name FROM campaigns ORDER BY name")]


async def test_the_answer_is_the_new_campaign(api: Api, tenant: Tenant, rival: Rival) -> None:
    now = format_timestamp(api.clock.freeze())
    answer = await create(tenant, starts_at=EARLIER, ends_at=LATER)
    assert answer.status == 201
    campaign_id = answer.json["id"]
    assert re.fullmatch(r"cmp_[A-Za-z0-9_-]{22}", campaign_id)
    assert answer.json == {
        "id": campaign_id,
        "organization_id": tenant.organization_id,
        "project_id": tenant.project_id,
        "name": "Tonight",
        "starts_at": EARLIER,
        "ends_at": LATER,
        "status": "active",
        "created_at": now,
        "archived_at": None,
    }
    listed = await api.get("/v1/campaigns", params={**tenant.query, "project_id": tenant.project_id})
    assert listed.json["data"] == [answer.json]
    expected = {"campaign_id": campaign_id, "name": "Tonight", "starts_at": EARLIER, "ends_at": LATER}
    assert await rival.audited("campaign.created") == [("user operator", tenant.project_id, expected)]


@pytest.mark.parametrize("dates", [{}, {"starts_at": None, "ends_at": None}])
async def test_a_campaign_needs_no_schedule(tenant: Tenant, dates: dict[str, None]) -> None:
    answer = await create(tenant, **dates)
    assert (answer.status, answer.json["starts_at"], answer.json["ends_at"]) == (201, None, None)
    assert (await tenant.make_code(campaign_id=answer.json["id"]))["campaign_id"] == answer.json["id"]


@pytest.mark.parametrize("member", ["starts_at", "ends_at"])
async def test_either_end_may_be_open(tenant: Tenant, member: str) -> None:
    answer = await create(tenant, **{member: EARLIER})
    assert {"starts_at": None, "ends_at": None, member: EARLIER}.items() <= answer.json.items()


async def test_a_schedule_may_be_over_already(tenant: Tenant) -> None:
    """Issuance checks the schedule."""
    answer = await create(tenant, starts_at="2020-01-01T00:00:00Z", ends_at="2020-01-02T00:00:00Z")
    assert (answer.status, answer.json["status"]) == (201, "active")
    refused = await tenant.api.post("/v1/codes", json=tenant.code_body(campaign_id=answer.json["id"]))
    assert (refused.status, refused.code) == (409, "campaign_not_open")


async def test_any_offset_is_answered_in_utc(tenant: Tenant) -> None:
    answer = await create(tenant, starts_at="2027-06-21T02:00:00+02:00", ends_at="2027-09-22T18:00:00.0009-06:00")
    assert (answer.json["starts_at"], answer.json["ends_at"]) == (EARLIER, LATER)


@pytest.mark.parametrize(
    ("starts_at", "ends_at"),
    [(EARLIER, EARLIER), (LATER, EARLIER), ("2027-06-21T00:00:00.0001Z", "2027-06-21T00:00:00.0009Z")],
)
async def test_a_schedule_begins_before_it_ends(tenant: Tenant, rival: Rival, starts_at: str, ends_at: str) -> None:
    assert pointers(await create(tenant, starts_at=starts_at, ends_at=ends_at)) == ["/ends_at"]
    assert await names(rival) == []


async def test_a_schedule_may_be_a_millisecond(tenant: Tenant) -> None:
    assert (await create(tenant, starts_at=EARLIER, ends_at="2027-06-21T00:00:00.001Z")).status == 201


@pytest.mark.parametrize("moment", ["2027-06-21T00:00:00", 1], ids=repr)
@pytest.mark.parametrize("member", ["starts_at", "ends_at"])
async def test_a_malformed_time_is_refused(tenant: Tenant, member: str, moment: Any) -> None:
    assert pointers(await create(tenant, **{member: moment})) == [f"/{member}"]


@pytest.mark.parametrize("name", ["Tonight", " Tonight\t"])
async def test_a_name_is_taken_once_in_a_project(tenant: Tenant, rival: Rival, name: str) -> None:
    await tenant.make_campaign()
    answer = await create(tenant, name=name)
    assert (answer.status, answer.code) == (409, "campaign_name_conflict")
    assert await names(rival) == ["Tonight"]
    assert len(await rival.audited("campaign.created")) == 1


async def test_an_archived_campaign_keeps_its_name(tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    await tenant.api.post(f"/v1/campaigns/{campaign['id']}/archive", params=tenant.query)
    assert (await create(tenant)).code == "campaign_name_conflict"


async def test_names_may_repeat_in_other_projects_and_organisations(api: Api, tenant: Tenant) -> None:
    await tenant.make_campaign()
    assert (await create(tenant, name="tonight")).status == 201
    other = await api.make_project(tenant.organization_id, "Evening show")
    assert (await create(tenant, project_id=other)).status == 201
    assert (await create(await make_tenant(api))).status == 201


async def test_of_two_concurrent_creations_with_one_name_one_is_refused(tenant: Tenant, rival: Rival) -> None:
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        one = await rival.while_waiting(create(tenant))
        two = asyncio.create_task(create(tenant))
        await rival.until_someone_waits(2)
    assert ((await one).status, (await two).code) == (201, "campaign_name_conflict")
    assert await names(rival) == ["Tonight"]


async def test_a_name_that_was_not_taken_after_all_is_free(tenant: Tenant, rival: Rival) -> None:
    """A caller who waits for another's creation gets the name if that creation is rolled back."""
    insert = (
        "INSERT INTO campaigns (organization_id, id, project_id, name, created_at)"
        " VALUES (%s, 'cmp_r', %s, 'Tonight', now())"
    )
    async with rival.holding(insert, tenant.organization_id, tenant.project_id):
        creating = await rival.while_waiting(create(tenant))
    assert (await creating).status == 201


async def test_a_project_deleted_meanwhile_is_not_found(tenant: Tenant, rival: Rival) -> None:
    async with rival.committing("DELETE FROM projects"):
        creating = await rival.while_waiting(create(tenant))
    assert ((await creating).status, (await creating).code) == (404, "project_not_found")
