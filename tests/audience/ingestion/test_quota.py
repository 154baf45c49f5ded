"""How many events a month may record, and until when."""

import asyncio
import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
from support.audience.client import AudienceApi, entitlement_body
from support.audience.event_publisher import Publisher, make_publisher
from support.database.rival import Rival

from soundmark.audience.hot.decision import BatchDecision
from soundmark.audience.hot.group import GroupCommit
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.timestamps import format_timestamp

DEMO_QUOTA = 100
OTHER_ORGANIZATION = {"organization_id": "org_YW5vdGhlci1yYWRpby1leG", "project_id": "prj_YW5vdGhlci1zaG93LWV4YW"}


async def make_used(rival: Rival, source: Publisher, events: int) -> None:
    """Count this many events as recorded in the month."""
    await rival.run(
        "INSERT INTO event_months VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (organization_id, mode, first_day) DO UPDATE SET events = excluded.events",
        source.integration.view["organization_id"],
        source.integration.view["mode"],
        source.now().date().replace(day=1),
        events,
    )


async def contract(audience: AudienceApi, quota: int, **changes: Any) -> Publisher:
    return await make_publisher(
        audience, mode="contract", entitlement=entitlement_body(monthly_event_quota=quota), **changes
    )


async def test_a_demo_records_a_hundred_events_a_month(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    await make_used(audience_rival, source, DEMO_QUOTA - 1)

    last, refused = await source.deliver(), await source.deliver()

    assert last.status == 201
    assert (refused.status, refused.json["code"]) == (429, "event_quota_exceeded")
    assert await audience_rival.rows("SELECT events FROM event_months") == [(DEMO_QUOTA,)]


async def test_the_month_is_locked_from_the_count_to_the_commit(
    audience: AudienceApi, audience_rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise two processes could each record the last event of a quota."""
    source = await make_publisher(audience)
    assert (await source.deliver()).status == 201
    write, attempts = GroupCommit._write, []

    async def write_while_a_rival_tries(self: GroupCommit, tx: Tx, decided: BatchDecision, first_day: date) -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await audience_rival.run("SELECT FROM event_months FOR NO KEY UPDATE NOWAIT")
        attempts.append(first_day)
        await write(self, tx, decided, first_day)

    monkeypatch.setattr(GroupCommit, "_write", write_while_a_rival_tries)
    assert (await source.deliver()).status == 201
    assert len(attempts) == 1


async def test_fifty_at_once_store_exactly_the_quota(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await contract(audience, 20)
    sibling = await contract(audience, 20)

    answers = await asyncio.gather(
        *((source if number % 2 else sibling).deliver() for number in range(50)),
    )

    assert Counter(answer.status for answer in answers) == {201: 20, 429: 30}
    assert await audience_rival.rows("SELECT count(*) FROM events") == [(20,)]
    assert await audience_rival.rows("SELECT events FROM event_months") == [(20,)]


async def test_a_refused_event_spends_nothing(audience: AudienceApi, audience_rival: Rival) -> None:
    """Once there is room again, the same delivery is recorded."""
    source = await contract(audience, 1)
    await source.deliver()
    body = json.dumps(source.event()).encode()
    assert (await source.deliver(body)).status == 429

    await audience_rival.run("UPDATE entitlements SET monthly_event_quota = 2")

    assert (await source.deliver(body)).status == 201


async def test_a_duplicate_uses_none_and_is_answered_when_none_is_left(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    source = await contract(audience, 1)
    event = source.event()
    await source.deliver(event)

    assert (await source.deliver(event)).json["status"] == "duplicate"
    pair = source.event(measurement_token=event["measurement_token"])
    assert (await source.deliver(pair)).json["status"] == "duplicate"

    assert await audience_rival.rows("SELECT events FROM event_months") == [(1,)]


async def test_retry_after_names_the_next_month(audience: AudienceApi) -> None:
    source = await contract(audience, 0)
    now = audience.clock.freeze()

    answer = await source.deliver()

    following = (now.replace(day=1) + timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0)
    wait_s = int(answer.headers["retry-after"])
    assert now + timedelta(seconds=wait_s - 2) <= following <= now + timedelta(seconds=wait_s)


async def test_a_new_month_begins_at_midnight_of_utc(audience: AudienceApi, audience_rival: Rival) -> None:
    """The month of receipt counts: an event of the month's last second that arrives later belongs to the next month."""
    audience.clock.frozen_at = datetime(2027, 1, 31, 23, 59, 59, tzinfo=UTC)
    source = await contract(audience, 1)
    late = source.event()
    assert (await source.deliver()).status == 201
    assert (await source.deliver()).status == 429

    audience.clock.advance(seconds=1)

    assert (await source.deliver(late)).status == 201
    assert await audience_rival.rows("SELECT first_day, events FROM event_months ORDER BY first_day") == [
        (datetime(2027, 1, 1, tzinfo=UTC).date(), 1),
        (datetime(2027, 2, 1, tzinfo=UTC).date(), 1),
    ]


async def test_modes_and_organisations_have_quotas_of_their_own(audience: AudienceApi) -> None:
    used_up = await contract(audience, 0)
    demo = await make_publisher(audience)
    self_service = await make_publisher(
        audience, mode="self_service", entitlement=entitlement_body(monthly_event_quota=1)
    )
    foreign = await contract(audience, 1, **OTHER_ORGANIZATION)

    answers = await asyncio.gather(*(source.deliver() for source in (used_up, demo, self_service, foreign)))

    assert [answer.status for answer in answers] == [429, 201, 201, 201]


async def test_an_organisations_projects_share_a_quota(audience: AudienceApi) -> None:
    one = await contract(audience, 1)
    other = await contract(audience, 1, project_id="prj_YW5vdGhlci1zaG93LWV4YW")

    assert (await one.deliver()).status == 201
    assert (await other.deliver()).status == 429


@pytest.mark.parametrize("mode", ["contract", "self_service"])
async def test_without_an_entitlement_nothing_is_recorded(
    audience: AudienceApi, audience_rival: Rival, mode: str
) -> None:
    source = await make_publisher(audience, mode=mode, entitlement=entitlement_body())
    await audience_rival.run("DELETE FROM entitlements")

    answer = await source.deliver()

    assert (answer.status, answer.json["code"]) == (409, "entitlement_required")


async def test_an_entitlement_ends_by_itself(audience: AudienceApi, audience_rival: Rival) -> None:
    """Audience does not ask Core for that; a demo integration needs no entitlement."""
    now = audience.clock.freeze()
    ends_at = format_timestamp(now + timedelta(minutes=1))
    source = await make_publisher(audience, mode="contract", entitlement=entitlement_body(ends_at=ends_at))
    demo = await make_publisher(audience)

    audience.clock.advance(minutes=1, milliseconds=-1)
    assert (await source.deliver()).status == 201
    audience.clock.advance(milliseconds=1)
    refused = await source.deliver()

    assert (refused.status, refused.json["code"]) == (409, "entitlement_required")
    assert (await demo.deliver()).status == 201
    assert await audience_rival.rows("SELECT count(*) FROM events") == [(2,)]


async def test_a_larger_entitlement_applies_at_once(audience: AudienceApi) -> None:
    source = await contract(audience, 1)
    await source.deliver()
    assert (await source.deliver()).status == 429

    organization_id = source.integration.view["organization_id"]
    projected = await audience.call(
        "PUT", f"/v1/entitlements/{organization_id}/contract", json=entitlement_body(monthly_event_quota=2, revision=2)
    )

    assert projected.status in {200, 204}, projected.body
    assert (await source.deliver()).status == 201


async def test_a_revoked_integration_records_nothing_more(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    body = json.dumps(source.event()).encode()
    await source.deliver(body)
    await source.integration.change("revoke")

    for event in (body, source.event()):
        answer = await source.deliver(event)
        assert (answer.status, answer.json["code"]) == (409, "integration_revoked")

    assert await audience_rival.rows("SELECT count(*) FROM events") == [(1,)]
    assert await audience_rival.rows("SELECT count(*) FROM integrity_days") == [(0,)]


async def test_an_invalid_proof_is_refused_before_the_revocation_is_reported(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    await source.integration.change("revoke")
    event = source.event()

    answer = await source.deliver({**event, "proof": {**event["proof"], "signature": "A" * 86}})

    assert answer.json["code"] == "proof_invalid"
