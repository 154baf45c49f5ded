"""`PATCH /v1/campaigns/{campaign_id}`: another name or schedule, for future issuances."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api, pointers
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.kit.text.timestamps import format_timestamp

FIRST, SECOND, THIRD = "2027-06-21T00:00:00.000Z", "2027-08-01T12:00:00.000Z", "2027-09-23T00:00:00.000Z"


async def update(tenant: Tenant, campaign: dict[str, Any] | str, **changes: Any) -> Answer:
    campaign_id = campaign if isinstance(campaign, str) else campaign["id"]
    return await tenant.api.patch(f"/v1/campaigns/{campaign_id}", params=tenant.query, json=changes)


async def stored(tenant: Tenant) -> Any:
    params = {**tenant.query, "project_id": tenant.project_id}
    return (await tenant.api.get("/v1/campaigns", params=params)).json["data"]


def read_logged_changes(campaign: dict[str, Any]) -> dict[str, Any]:
    return {name: campaign[name] for name in ("name", "starts_at", "ends_at")}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Tomorrow"},
        {"starts_at": SECOND},
        {"starts_at": None, "ends_at": None},
        {"name": "Tomorrow", "starts_at": SECOND, "ends_at": None},
    ],
    ids=str,
)
async def test_the_given_members_change_and_the_others_stay(
    api: Api, tenant: Tenant, rival: Rival, changes: dict[str, Any]
) -> None:
    before = await tenant.make_campaign(starts_at=FIRST, ends_at=THIRD)
    api.clock.advance(seconds=1)
    answer = await update(tenant, before, **changes)
    assert (answer.status, answer.json) == (200, {**before, **changes})
    assert await stored(tenant) == [answer.json]
    entry = {
        "campaign_id": before["id"],
        "previous": read_logged_changes(before),
        "current": read_logged_changes(answer.json),
    }
    assert await rival.audited("campaign.updated") == [("user operator", tenant.project_id, entry)]


async def test_a_change_to_the_same_values_succeeds_and_is_audited(tenant: Tenant, rival: Rival) -> None:
    """Like a project that is renamed to its current name."""
    campaign = await tenant.make_campaign(starts_at=FIRST)
    answer = await update(tenant, campaign, name=" Tonight", starts_at=FIRST, ends_at=None)
    assert (answer.status, answer.json) == (200, campaign)
    ((_, _, entry),) = await rival.audited("campaign.updated")
    assert entry["previous"] == entry["current"] == read_logged_changes(campaign)


async def test_codes_that_were_issued_stay_as_they_are(api: Api, tenant: Tenant) -> None:
    """The new schedule applies only to later issuances."""
    now = api.clock.freeze()
    campaign = await tenant.make_campaign()
    code = await tenant.make_code(campaign_id=campaign["id"])
    await update(tenant, campaign, ends_at=format_timestamp(now))
    assert (await api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)).json == code
    assert (await api.resolve(code["broadcast_token"])).status == 200
    refused = await api.post("/v1/codes", json=tenant.code_body(campaign_id=campaign["id"]))
    assert (refused.status, refused.code) == (409, "campaign_not_open")
    await update(tenant, campaign, ends_at=format_timestamp(now + timedelta(seconds=1)))
    await tenant.make_code(campaign_id=campaign["id"])


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"starts_at": THIRD}, "/starts_at"),
        ({"ends_at": FIRST}, "/ends_at"),
        ({"starts_at": SECOND, "ends_at": SECOND}, "/ends_at"),
    ],
    ids=str,
)
async def test_the_schedule_that_results_begins_before_it_ends(
    tenant: Tenant, rival: Rival, changes: dict[str, Any], pointer: str
) -> None:
    campaign = await tenant.make_campaign(starts_at=FIRST, ends_at=THIRD)
    assert pointers(await update(tenant, campaign, name="Tomorrow", **changes)) == [pointer]
    assert await stored(tenant) == [campaign]
    assert await rival.audited("campaign.updated") == []


async def test_a_schedule_is_judged_by_what_another_changed_meanwhile(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign(starts_at=FIRST, ends_at=THIRD)
    async with rival.committing("UPDATE campaigns SET starts_at = %s", SECOND):
        updating = await rival.while_waiting(update(tenant, campaign, ends_at=SECOND))
    assert pointers(await updating) == ["/ends_at"]


@pytest.mark.parametrize("moment", ["2027-06-21T00:00:00", 1], ids=repr)
@pytest.mark.parametrize("member", ["starts_at", "ends_at"])
async def test_a_malformed_time_is_refused(tenant: Tenant, member: str, moment: Any) -> None:
    assert pointers(await update(tenant, await tenant.make_campaign(), **{member: moment})) == [f"/{member}"]


async def test_an_empty_change_is_refused(tenant: Tenant, rival: Rival) -> None:
    assert pointers(await update(tenant, await tenant.make_campaign())) == [""]
    assert await rival.audited("campaign.updated") == []


@pytest.mark.parametrize("ending", ["archive", "stop"])
@pytest.mark.parametrize("changes", [{"name": "Tonight"}, {"starts_at": THIRD, "ends_at": FIRST}])
async def test_an_archived_campaign_cannot_be_changed(
    tenant: Tenant, rival: Rival, ending: str, changes: dict[str, Any]
) -> None:
    campaign = await tenant.make_campaign()
    await tenant.api.post(f"/v1/campaigns/{campaign['id']}/{ending}", params=tenant.query)
    before = await stored(tenant)
    answer = await update(tenant, campaign, **changes)
    assert (answer.status, answer.code) == (409, "campaign_archived")
    assert await stored(tenant) == before
    assert await rival.audited("campaign.updated") == []


async def test_a_campaign_archived_meanwhile_cannot_be_changed(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    async with rival.committing("UPDATE campaigns SET archived_at = now()"):
        updating = await rival.while_waiting(update(tenant, campaign, name="Tomorrow"))
    assert ((await updating).status, (await updating).code) == (409, "campaign_archived")
    assert (await stored(tenant))[0]["name"] == "Tonight"


async def test_an_archive_that_waits_for_a_change_comes_after_it(tenant: Tenant, rival: Rival) -> None:
    """And if the archiving comes first, the change waits for it: they never mix."""
    campaign = await tenant.make_campaign()
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        updating = await rival.while_waiting(update(tenant, campaign, name="Tomorrow"))
        archiving = asyncio.create_task(tenant.api.post(f"/v1/campaigns/{campaign['id']}/archive", params=tenant.query))
        await rival.until_someone_waits(2)
    assert (await updating).json == {**campaign, "name": "Tomorrow"}
    archived = (await archiving).json
    assert (archived["name"], archived["status"]) == ("Tomorrow", "archived")


async def test_two_changes_at_once_are_both_kept(tenant: Tenant, rival: Rival) -> None:
    """The second starts from what the first left, and logs that."""
    campaign = await tenant.make_campaign()
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        one = await rival.while_waiting(update(tenant, campaign, starts_at=FIRST))
        two = asyncio.create_task(update(tenant, campaign, ends_at=THIRD))
        await rival.until_someone_waits(2)
    assert (await one).json == {**campaign, "starts_at": FIRST}
    assert (await two).json == {**campaign, "starts_at": FIRST, "ends_at": THIRD}
    entries = [entry for _, _, entry in await rival.audited("campaign.updated")]
    first, second = sorted(entries, key=lambda entry: entry["current"]["ends_at"] is not None)
    assert second["previous"] == first["current"]


@pytest.mark.parametrize("name", ["Taken", " Taken "])
async def test_a_name_is_taken_once_in_a_project(tenant: Tenant, rival: Rival, name: str) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_campaign("Taken")
    answer = await update(tenant, campaign, name=name, ends_at=SECOND)
    assert (answer.status, answer.code) == (409, "campaign_name_conflict")
    assert campaign in await stored(tenant)
    assert await rival.audited("campaign.updated") == []


async def test_names_may_repeat_in_another_project(api: Api, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    other = await api.make_project(tenant.organization_id, "Evening show")
    await tenant.make_campaign("Taken", project_id=other)
    await tenant.make_campaign("taken")
    assert (await update(tenant, campaign, name="Taken")).status == 200
    await tenant.make_campaign("Tonight")


async def test_two_that_swap_their_names_are_both_refused(tenant: Tenant, rival: Rival) -> None:
    """One after the other: neither finds the other's name free, and neither waits for the other."""
    one, two = await tenant.make_campaign("One"), await tenant.make_campaign("Two")
    async with rival.holding("SELECT 1 FROM campaigns FOR UPDATE"):
        first = await rival.while_waiting(update(tenant, one, name="Two"))
        second = asyncio.create_task(update(tenant, two, name="One"))
        await rival.until_someone_waits(2)
    assert ((await first).code, (await second).code) == ("campaign_name_conflict", "campaign_name_conflict")


async def test_of_two_concurrent_changes_to_one_name_one_is_refused(tenant: Tenant, rival: Rival) -> None:
    one, two = await tenant.make_campaign("One"), await tenant.make_campaign("Two")
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        first = await rival.while_waiting(update(tenant, one, name="Three"))
        second = asyncio.create_task(update(tenant, two, name="Three"))
        await rival.until_someone_waits(2)
    assert ((await first).status, (await second).code) == (200, "campaign_name_conflict")


async def test_a_name_that_a_new_campaign_takes_meanwhile_is_taken(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    insert = (
        "INSERT INTO campaigns (organization_id, id, project_id, name, created_at) VALUES (%s, 'cmp_r', %s, 'X', now())"
    )
    async with rival.committing(insert, tenant.organization_id, tenant.project_id):
        updating = await rival.while_waiting(update(tenant, campaign, name="X"))
    assert ((await updating).status, (await updating).code) == (409, "campaign_name_conflict")


async def test_a_campaign_deleted_during_the_wait_is_not_found(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    async with rival.committing("DELETE FROM campaigns"):
        updating = await rival.while_waiting(update(tenant, campaign, name="Tomorrow"))
    assert ((await updating).status, (await updating).code) == (404, "campaign_not_found")
