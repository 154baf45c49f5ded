"""Purging a tenant: everything of it goes, once, and nothing of it comes back."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer
from support.audience.client import AudienceApi, entitlement_body, new_operation_id
from support.audience.event_publisher import Publisher, make_publisher
from support.database.rival import Rival

ORGANIZATION, PROJECT, OTHER_PROJECT = "org_of_the_purged", "prj_of_the_purged", "prj_that_stays"
TABLES = ("events", "event_ids", "spent_proofs", "integrity_days", "measured_codes")


def subject(project_id: str | None = None) -> dict[str, Any]:
    return {"organization_id": ORGANIZATION, "project_id": project_id}


async def purge(audience: AudienceApi, project_id: str | None = None, *, operation_id: str | None = None) -> Answer:
    operation_id = operation_id or new_operation_id()
    return await audience.call("POST", "/v1/purges", operation_id=operation_id, json=subject(project_id))


async def make_source(audience: AudienceApi, project_id: str = PROJECT, *, events: int = 2) -> Publisher:
    """Make a publisher that has recorded events, one of them twice."""
    source = await make_publisher(audience, organization_id=ORGANIZATION, project_id=project_id)
    for _ in range(events):
        event = source.event()
        assert (await source.deliver(event)).status == 201
    assert (await source.deliver(event)).json["status"] == "duplicate"
    return source


async def put_legacy_days(audience: AudienceApi, project_id: str = PROJECT) -> Answer:
    days = [{"day": "2020-01-01", "events": 7}, {"day": "2020-01-02", "events": 8}]
    body = {"organization_id": ORGANIZATION, "project_id": project_id, "days": days}
    return await audience.call("PUT", "/v1/legacy-days", json=body)


async def put_entitlement(audience: AudienceApi) -> Answer:
    return await audience.call("PUT", f"/v1/entitlements/{ORGANIZATION}/contract", json=entitlement_body())


async def count(rival: Rival, *tables: str) -> dict[str, int]:
    return {table: (await rival.rows(f"SELECT count(*) FROM {table}"))[0][0] for table in tables}


async def test_it_counts_what_it_deletes(audience: AudienceApi, audience_rival: Rival) -> None:
    await make_source(audience)
    await make_source(audience, OTHER_PROJECT, events=3)
    assert (await put_legacy_days(audience)).status == 200
    assert (await put_entitlement(audience)).status == 200

    answer = await purge(audience)

    assert answer.status == 200
    assert answer.json["deleted"] == {
        "integrations": 2, "events": 5, "integrity_days": 2, "legacy_days": 2, "spent_proofs": 5,
    }  # fmt: skip
    assert set(answer.json["remaining"].values()) == {0}
    left = await count(audience_rival, *TABLES, "integrations", "event_months", "entitlements", "operations")
    assert set(left.values()) == {0}


async def test_a_project_is_purged_alone(audience: AudienceApi, audience_rival: Rival) -> None:
    """The months and entitlements are the organisation's."""
    await make_source(audience)
    kept = await make_source(audience, OTHER_PROJECT, events=3)
    await put_legacy_days(audience)
    await put_legacy_days(audience, OTHER_PROJECT)
    await put_entitlement(audience)

    answer = await purge(audience, PROJECT)

    assert answer.json["deleted"]["events"] == 2
    assert await count(audience_rival, "events", "legacy_days", "event_months", "entitlements") == {
        "events": 3, "legacy_days": 2, "event_months": 1, "entitlements": 1,
    }  # fmt: skip
    assert (await kept.deliver()).status == 201


async def test_repeated_it_answers_the_same(audience: AudienceApi) -> None:
    await make_source(audience)
    operation_id = new_operation_id()
    first = await purge(audience, operation_id=operation_id)

    assert (await purge(audience, operation_id=operation_id)).json == first.json


async def test_another_operation_finds_nothing(audience: AudienceApi) -> None:
    await make_source(audience)
    await purge(audience)

    again = await purge(audience)

    assert again.status == 200
    assert set(again.json["deleted"].values()) == {0}


async def test_an_operation_purges_one_subject(audience: AudienceApi) -> None:
    operation_id = new_operation_id()
    await purge(audience, operation_id=operation_id)

    assert (await purge(audience, PROJECT, operation_id=operation_id)).json["code"] == "operation_conflict"


async def test_nothing_comes_back(audience: AudienceApi, audience_rival: Rival) -> None:
    """Requests of Core that arrive late are refused, and events find no integration."""
    source = await make_source(audience)
    await purge(audience)

    late = [
        await audience.create(organization_id=ORGANIZATION, project_id=PROJECT),
        await put_entitlement(audience),
        await put_legacy_days(audience),
    ]
    event = await source.deliver()

    assert [(answer.status, answer.json["code"]) for answer in late] == [(409, "tenant_purged")] * 3
    assert (event.status, event.json["code"]) == (401, "unauthenticated")
    left = await count(audience_rival, *TABLES, "integrations", "event_months", "entitlements", "legacy_days")
    assert set(left.values()) == {0}


async def test_after_a_project_only_that_project_is_shut(audience: AudienceApi) -> None:
    await purge(audience, PROJECT)

    shut = await audience.create(organization_id=ORGANIZATION, project_id=PROJECT)
    open_ = await audience.create(organization_id=ORGANIZATION, project_id=OTHER_PROJECT)

    assert (shut.json["code"], open_.status) == ("tenant_purged", 201)


async def test_the_deadline_ends_a_call_and_a_repetition_goes_on(
    audience: AudienceApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call deletes some rows at least, and the counts of all calls add up."""
    monkeypatch.setattr("soundmark.audience.features.purges.service._ROWS_AT_ONCE", 2)
    monkeypatch.setattr("soundmark.audience.features.purges.service._MARGIN_S", 1000.0)
    await make_source(audience, events=7)
    operation_id, calls = new_operation_id(), 0
    headers = {"X-Svc-Timeout-Ms": "10000"}

    while True:
        answer = await audience.call("POST", "/v1/purges", operation_id=operation_id, json=subject(), headers=headers)
        assert answer.status == 200, answer.body
        calls += 1
        if answer.json["remaining"] is not None:
            break
        assert calls < 20

    assert calls > 3
    assert (answer.json["deleted"]["events"], answer.json["deleted"]["spent_proofs"]) == (7, 7)


@pytest.mark.parametrize("project_id", [None, PROJECT])
async def test_an_event_that_was_admitted_before_is_purged_too(
    audience: AudienceApi, audience_rival: Rival, project_id: str | None
) -> None:
    """The purge waits for the batch that read the integration before it was revoked."""
    source = await make_source(audience)

    async with audience_rival.holding("LOCK TABLE events IN SHARE MODE"):
        delivering = await audience_rival.while_waiting(source.deliver())
        purging = asyncio.create_task(purge(audience, project_id))
        await audience_rival.until_someone_waits(2)

    assert (await delivering).status == 201
    assert (await purging).json["deleted"]["events"] == 3
    assert set((await count(audience_rival, *TABLES)).values()) == {0}


@pytest.mark.parametrize("project_id", [None, PROJECT])
async def test_an_event_that_waits_for_the_purge_is_refused(
    audience: AudienceApi, audience_rival: Rival, project_id: str | None
) -> None:
    source = await make_source(audience)
    await make_source(audience, OTHER_PROJECT)

    async with audience_rival.holding("SELECT FROM event_months FOR UPDATE"):
        delivering = await audience_rival.while_waiting(source.deliver())
        purging = asyncio.create_task(purge(audience, project_id))
        await audience_rival.until_someone_waits(2)

    assert (await delivering).status in {401, 409}
    assert (await purging).status == 200
    left = await audience_rival.rows("SELECT count(*) FROM events JOIN integrations ON number = integration")
    assert left == ([(0,)] if project_id is None else [(2,)])
    assert await audience_rival.rows("SELECT count(*) FROM events") == left


async def test_the_events_of_others_are_judged_in_the_same_batch(audience: AudienceApi, audience_rival: Rival) -> None:
    """A purged sender in a batch costs the others nothing."""
    gone, other = await make_source(audience), await make_publisher(audience)
    await other.deliver()
    await purge(audience)

    answers = await asyncio.gather(*(each.deliver() for each in (gone, other) * 5))

    assert sorted(answer.status for answer in answers) == [201] * 5 + [401] * 5
    assert await audience_rival.rows("SELECT count(*) FROM event_months") == [(1,)]


async def test_an_integration_that_is_being_created_is_purged_too(audience: AudienceApi, audience_rival: Rival) -> None:
    async with audience_rival.holding("LOCK TABLE operations IN EXCLUSIVE MODE"):
        creating = await audience_rival.while_waiting(audience.create(organization_id=ORGANIZATION, project_id=PROJECT))
        purging = asyncio.create_task(purge(audience))
        await audience_rival.until_someone_waits(2)

    assert (await creating).status == 201
    assert (await purging).json["deleted"]["integrations"] == 1


async def test_integrations_are_counted_before(audience: AudienceApi) -> None:
    await make_source(audience)
    revoked = await make_source(audience, OTHER_PROJECT)
    await revoked.integration.change("revoke")

    async def counted(**query: str) -> Any:
        return (await audience.call("GET", "/v1/integration-count", params=query)).json

    assert await counted(organization_id=ORGANIZATION) == {"integrations": 2}
    assert await counted(organization_id=ORGANIZATION, project_id=PROJECT) == {"integrations": 1}
    assert await counted(organization_id="org_another") == {"integrations": 0}


async def test_the_table_of_purges_names_nobody(audience: AudienceApi, audience_rival: Rival) -> None:
    await make_source(audience)
    await purge(audience)
    await purge(audience, PROJECT)

    rows = await audience_rival.rows("SELECT to_jsonb(purges)::text FROM purges")
    assert len(rows) == 2
    for (row,) in rows:
        assert ORGANIZATION not in row
        assert ORGANIZATION.encode().hex() not in row


@pytest.mark.parametrize("body", [{}, {"organization_id": ORGANIZATION}, {**subject(), "force": True}])
async def test_a_body_of_another_shape_is_refused(audience: AudienceApi, body: dict[str, Any]) -> None:
    answer = await audience.call("POST", "/v1/purges", operation_id=new_operation_id(), json=body)

    assert answer.json["code"] == "validation_failed"
