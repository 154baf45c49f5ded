"""`PATCH /v1/campaigns/{campaign_id}`: another name or schedule, for future issuances."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp

FIRST, SECOND, THIRD = "2027-06-21T00:00:00.000Z", "2027-08-01T12:00:00.000Z", "2027-09-23T00:00:00.000Z"


async def update(tenant: Tenant, campaign: dict[str, Any] | str, **changes: Any) -> Answer:
    campaign_id = campaign if isinstance(campaign, str) else campaign["id"]
    return await tenant.api.patch(f"/v1/campaigns/{campaign_id}", params=tenant.query, json=changes)


async def stored(tenant: Tenant) -> Any:
    params = {**tenant.query, "project_id": tenant.project_id}
    return (await tenant.api.get("/v1/campaigns", params=params)).json["data"]


def pointers(answer: Answer) -> list[str]:
    assert (answer.status, answer.code) == (422, "validation_failed"), answer.body
    return [error["pointer"] for error in answer.json["errors"]]


def read_logged_changes(campaign: dict[str, Any]) -> dict[str, Any]:
    return {name: campaign[name] for name in ("name", "starts_at", "ends_at")}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Tomorrow"},
        {"starts_at": SECOND},
        {"ends_at": SECOND},
        {"starts_at": None},
        {"ends_at": None},
        {"starts_at": None, "ends_at": None},
        {"name": "Tomorrow", "starts_at": SECOND, "ends_at": None},
        {"starts_at": THIRD, "ends_at": "2027-12-01T00:00:00.000Z"},
        {"starts_at": "2027-01-01T00:00:00.000Z", "ends_at": FIRST},
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


async def test_any_offset_is_answered_in_utc(tenant: Tenant) -> None:
    answer = await update(tenant, await tenant.make_campaign(), starts_at="2027-06-21T02:00:00+02:00")
    assert answer.json["starts_at"] == FIRST


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
        ({"starts_at": "2028-01-01T00:00:00Z"}, "/starts_at"),
        ({"ends_at": FIRST}, "/ends_at"),
        ({"ends_at": "2026-01-01T00:00:00Z"}, "/ends_at"),
        ({"starts_at": SECOND, "ends_at": SECOND}, "/ends_at"),
        ({"starts_at": THIRD, "ends_at": FIRST}, "/ends_at"),
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


@pytest.mark.parametrize("name", ["a", "x" * 120, " \t\n" + "x" * 120 + "\u2003", "ÄÖ☃😀"])
async def test_a_name_has_1_to_120_characters_after_trimming(tenant: Tenant, name: str) -> None:
    assert (await update(tenant, await tenant.make_campaign(), name=name)).json["name"] == name.strip()


@pytest.mark.parametrize("name", ["", " \t", "x" * 121, "a\0b", "a\nb", "a\x7fb", None, 1, True, [], {}], ids=repr)
async def test_another_name_is_refused(tenant: Tenant, name: Any) -> None:
    """Null too: a campaign cannot lose its name."""
    campaign = await tenant.make_campaign()
    assert pointers(await update(tenant, campaign, name=name, ends_at=SECOND)) == ["/name"]
    assert await stored(tenant) == [campaign]


@pytest.mark.parametrize("moment", ["", "2027-06-21", "2027-06-21T00:00:00", 1, True, [], {}], ids=repr)
@pytest.mark.parametrize("member", ["starts_at", "ends_at"])
async def test_a_malformed_time_is_refused(tenant: Tenant, member: str, moment: Any) -> None:
    assert pointers(await update(tenant, await tenant.make_campaign(), **{member: moment})) == [f"/{member}"]


async def test_an_empty_change_is_refused(tenant: Tenant, rival: Rival) -> None:
    assert pointers(await update(tenant, await tenant.make_campaign())) == [""]
    assert await rival.audited("campaign.updated") == []


@pytest.mark.parametrize(
    "more",
    [{"status": "archived"}, {"archived_at": None}, {"project_id": "prj_other"}, {"organization_id": "org_other"}],
    ids=str,
)
async def test_nothing_else_can_be_changed(tenant: Tenant, more: dict[str, Any]) -> None:
    campaign = await tenant.make_campaign()
    (member,) = more
    assert pointers(await update(tenant, campaign, name="Tomorrow", **more)) == [f"/{member}"]
    assert await stored(tenant) == [campaign]


@pytest.mark.parametrize("ending", ["archive", "stop"])
@pytest.mark.parametrize("changes", [{"name": "Tonight"}, {"ends_at": None}, {"starts_at": THIRD, "ends_at": FIRST}])
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


@pytest.mark.parametrize("campaign_id", ["cmp_" + "A" * 22, "cmp_", "x", "cmp_%00"])
async def test_an_unknown_campaign_is_not_found(tenant: Tenant, campaign_id: str) -> None:
    answer = await update(tenant, campaign_id, name="Tomorrow")
    assert (answer.status, answer.code) == (404, "campaign_not_found")


async def test_a_campaign_of_another_organisation_is_not_found(api: Api, tenant: Tenant) -> None:
    """Both organisations belong to the caller."""
    other = await make_tenant(api)
    campaign = await other.make_campaign()
    answer = await update(tenant, campaign, name="Tomorrow")
    assert (answer.status, answer.code) == (404, "campaign_not_found")
    assert await stored(other) == [campaign]


async def test_the_organisation_is_named(tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    answer = await tenant.api.patch(f"/v1/campaigns/{campaign['id']}", json={"name": "Tomorrow"})
    assert pointers(answer) == ["/organization_id"]


async def test_a_second_factor_is_required(people: People, rival: Rival) -> None:
    """For owners and administrators; other members are read_logged_changes that they may not change it at all."""
    tenant = await people.tenant_of("alice")
    campaign = await tenant.make_campaign()
    await tenant.make_member(rival, "bob", "admin")
    await tenant.make_member(rival, "carol", "member")
    for subject_id, claims, status, code in (
        ("alice", {"acr": "1"}, 403, "mfa_required"),
        ("bob", {"acr": None}, 403, "mfa_required"),
        ("carol", {}, 403, "forbidden"),
        ("mallory", {}, 404, "organization_not_found"),
    ):
        caller = Tenant(people.person(subject_id, **claims), tenant.organization_id, tenant.project_id)
        answer = await update(caller, campaign, name="Tomorrow")
        assert (answer.status, answer.code) == (status, code), (subject_id, claims)
    assert await stored(tenant) == [campaign]
    bob = Tenant(people.person("bob"), tenant.organization_id, tenant.project_id)
    assert (await update(bob, campaign, name="Tomorrow")).status == 200


async def test_a_server_key_may_not_change_a_campaign(tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    server = tenant.with_key(await tenant.make_key())
    answer = await update(server, campaign, name="Tomorrow")
    assert (answer.status, answer.code) == (403, "user_token_required")


async def test_a_campaign_deleted_during_the_wait_is_not_found(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    async with rival.committing("DELETE FROM campaigns"):
        updating = await rival.while_waiting(update(tenant, campaign, name="Tomorrow"))
    assert ((await updating).status, (await updating).code) == (404, "campaign_not_found")


async def test_a_caller_who_is_demoted_meanwhile_changes_nothing(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    async with rival.committing("UPDATE members SET role = 'member'"):
        updating = await rival.while_waiting(update(tenant, campaign, name="Tomorrow"))
    assert ((await updating).status, (await updating).code) == (403, "forbidden")
    assert await stored(tenant) == [campaign]


@pytest.mark.parametrize("table", ["campaigns", "audit_entries"])
async def test_a_change_cut_before_its_commit_changes_nothing(tenant: Tenant, rival: Rival, table: str) -> None:
    campaign = await tenant.make_campaign()
    async with rival.holding(f"LOCK TABLE {table} IN SHARE MODE"):
        updating = await rival.while_waiting(update(tenant, campaign, name="Tomorrow"))
        await rival.kill_waiting_sessions()
        answer = await updating
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await stored(tenant) == [campaign]
    assert (await update(tenant, campaign, name="Tomorrow")).status == 200
