"""A change of retention: older events are deleted with it, and counted exactly."""

import asyncio
from datetime import date, timedelta
from typing import Any

import pytest
from support.audience.aged_events import list_kept_days, make_aged_events
from support.audience.client import AudienceApi, AudienceIntegration, entitlement_body, new_operation_id
from support.database.rival import Rival


async def contract(audience: AudienceApi, retention_days: int = 30) -> AudienceIntegration:
    return await audience.make_integration(
        mode="contract", retention_days=retention_days, entitlement=entitlement_body()
    )


def answer_of(
    given: AudienceIntegration, previous: int, current: int, events: int = 0, days: int = 0
) -> dict[str, Any]:
    return {
        "integration_id": given.id,
        "previous_retention_days": previous,
        "retention_days": current,
        "deleted_events": events,
        "deleted_integrity_days": days,
    }


async def test_events_outside_the_retention_are_deleted_and_counted(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    given = await contract(audience)
    today = audience.clock.now().date()
    await make_aged_events(audience_rival, given, {today - timedelta(days=age): age + 1 for age in range(10)})

    answer = await given.change("retention", {"retention_days": 3})

    # Days four to nine: five to ten events each, and a row of counters.
    assert (answer.status, answer.json) == (200, answer_of(given, 30, 3, events=45, days=6))
    expected = [today - timedelta(days=age) for age in (3, 2, 1, 0)]
    assert await list_kept_days(audience_rival, given, "events") == expected
    assert await list_kept_days(audience_rival, given, "integrity_days") == expected
    assert (await given.read()).json["retention_days"] == 3


async def test_no_day_is_deleted_before_the_retention_has_passed(audience: AudienceApi, audience_rival: Rival) -> None:
    """The last millisecond of the first kept day is less than the retention and a day ago."""
    given = await contract(audience)
    now = audience.clock.freeze()
    edge = now.date() - timedelta(days=1)
    await make_aged_events(audience_rival, given, {edge: 1, edge - timedelta(days=1): 1})

    assert (await given.change("retention", {"retention_days": 1})).json["deleted_events"] == 1
    assert await list_kept_days(audience_rival, given, "events") == [edge]


async def test_a_longer_retention_restores_and_deletes_nothing(audience: AudienceApi, audience_rival: Rival) -> None:
    given = await contract(audience, retention_days=5)
    today = audience.clock.now().date()
    await make_aged_events(audience_rival, given, {today - timedelta(days=age): 1 for age in range(5)})

    answer = await given.change("retention", {"retention_days": 730})

    assert answer.json == answer_of(given, 5, 730)
    assert len(await list_kept_days(audience_rival, given, "events")) == 5


async def test_the_same_retention_again_deletes_aged_events(audience: AudienceApi, audience_rival: Rival) -> None:
    """The daily deletion has not run yet."""
    given = await contract(audience, retention_days=5)
    old = audience.clock.now().date() - timedelta(days=6)
    await make_aged_events(audience_rival, given, {old: 2})

    assert (await given.change("retention", {"retention_days": 5})).json == answer_of(given, 5, 5, events=2, days=1)


async def test_no_other_integration_loses_anything(audience: AudienceApi, audience_rival: Rival) -> None:
    given, other = await contract(audience), await contract(audience)
    old = audience.clock.now().date() - timedelta(days=20)
    for one in (given, other):
        await make_aged_events(audience_rival, one, {old: 3})

    await given.change("retention", {"retention_days": 1})

    assert await list_kept_days(audience_rival, given, "events") == []
    assert await list_kept_days(audience_rival, other, "events") == [old]


@pytest.mark.parametrize(("days", "status"), [(1, 200), (14, 200), (15, 422)])
async def test_a_demo_keeps_fourteen_days_at_most(audience: AudienceApi, days: int, status: int) -> None:
    given = await audience.make_integration(retention_days=14)

    answer = await given.change("retention", {"retention_days": days})

    assert answer.status == status
    assert (await given.read()).json["retention_days"] == (days if status == 200 else 14)


async def test_a_wrong_body_deletes_nothing(
    audience: AudienceApi, audience_rival: Rival, subtests: pytest.Subtests
) -> None:
    for body in [
        {},
        [],
        {"retention_days": 0},
        {"retention_days": -1},
        {"retention_days": 731},
        {"retention_days": "5"},
        {"retention_days": 5.5},
        {"retention_days": True},
        {"retention_days": None},
        {"retention_days": 5, "mode": "contract"},
    ]:
        with subtests.test(body=body):
            given = await contract(audience)
            old = audience.clock.now().date() - timedelta(days=20)
            await make_aged_events(audience_rival, given, {old: 1})

            answer = await given.change("retention", body)

            assert (answer.status, answer.json["code"]) == (422, "validation_failed")
            assert await list_kept_days(audience_rival, given, "events") == [old]
            assert (await given.read()).json["retention_days"] == 30


async def test_dying_in_the_middle_keeps_everything(audience: AudienceApi, audience_rival: Rival) -> None:
    """The events are deleted and the counters wait for a lock: nothing is committed, and a repetition does it all."""
    given = await contract(audience)
    today = audience.clock.now().date()
    days = {today - timedelta(days=age): 2 for age in range(10)}
    await make_aged_events(audience_rival, given, days)
    operation_id = new_operation_id()
    async with audience_rival.holding("SELECT FROM integrity_days FOR UPDATE"):
        dying = await audience_rival.while_waiting(
            given.change("retention", {"retention_days": 3}, operation_id=operation_id)
        )
        await audience_rival.kill_waiting_sessions()
        assert (await dying).status == 503
    assert await list_kept_days(audience_rival, given, "events") == sorted(days)
    assert (await given.read()).json["retention_days"] == 30

    repeated = await given.change("retention", {"retention_days": 3}, operation_id=operation_id)

    assert repeated.json == answer_of(given, 30, 3, events=12, days=6)


async def test_two_cuts_at_once_count_each_event_once(audience: AudienceApi, audience_rival: Rival) -> None:
    given = await contract(audience)
    today = audience.clock.now().date()
    await make_aged_events(audience_rival, given, {today - timedelta(days=age): 1 for age in range(10)})
    async with audience_rival.holding("SELECT FROM integrations FOR UPDATE"):
        asking = [asyncio.create_task(given.change("retention", {"retention_days": days})) for days in (3, 3)]
        await audience_rival.until_someone_waits(2)
    answers = [(await one).json for one in asking]

    assert sum(answer["deleted_events"] for answer in answers) == 6
    assert sum(answer["deleted_integrity_days"] for answer in answers) == 6


async def test_a_day_that_ends_during_the_wait_counts_as_ended(audience: AudienceApi, audience_rival: Rival) -> None:
    given = await contract(audience)
    today: date = audience.clock.freeze().date()
    await make_aged_events(audience_rival, given, {today - timedelta(days=1): 1})
    async with audience_rival.holding("SELECT FROM integrations FOR UPDATE"):
        waiting = await audience_rival.while_waiting(given.change("retention", {"retention_days": 1}))
        audience.clock.advance(days=1)

    assert (await waiting).json["deleted_events"] == 1


async def test_recording_does_not_wait_for_it(audience: AudienceApi, audience_rival: Rival) -> None:
    """Between the deletion and its commit, other events of the integration are recorded."""
    given = await contract(audience)
    today = audience.clock.now().date()
    await make_aged_events(audience_rival, given, {today - timedelta(days=9): 5})
    async with audience_rival.holding("LOCK TABLE operations IN SHARE MODE"):
        cutting = await audience_rival.while_waiting(given.change("retention", {"retention_days": 3}))
        async with asyncio.timeout(10):
            await make_aged_events(audience_rival, given, {today: 5})
    assert (await cutting).json["deleted_events"] == 5
    assert await list_kept_days(audience_rival, given, "events") == [today]
