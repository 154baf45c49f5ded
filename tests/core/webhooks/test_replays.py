"""Sending events again."""

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.closures import organization_of
from support.tenancy.tenant import Tenant, make_tenant
from support.webhooks.replays import ALWAYS, end_deliveries, insert_events, make_events, replay

from soundmark.core.context import Context
from soundmark.core.features.webhooks.fan_out.service import fan_out
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp


async def count_pending(rival: Rival) -> Counter[str]:
    """Return how many deliveries of each event are pending."""
    rows = await rival.rows(
        "SELECT event_id, count(*) FROM webhook_deliveries WHERE status = 'pending' GROUP BY event_id"
    )
    return Counter(dict(rows))


async def test_a_replayed_period_begins_with_its_first_moment_and_ends_before_its_last(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    api.clock.freeze()
    endpoint = await tenant.make_webhook_endpoint()
    started = api.clock.now()
    ids = await make_events(tenant, rival, ctx)
    await end_deliveries(rival)
    first, last = [format_timestamp(started + timedelta(seconds=seconds)) for seconds in (1, 2)]
    answer = await replay(tenant, endpoint, **{"from": first, "to": last})
    assert (answer.status, answer.json) == (200, {"replayed_count": 1})
    rows = await rival.rows("SELECT event_id, count(DISTINCT id) FROM webhook_deliveries GROUP BY event_id")
    assert dict(rows) == {ids[0]: 1, ids[1]: 2, ids[2]: 1}


async def test_thirty_days_are_replayed_at_once(api: Api, tenant: Tenant, rival: Rival) -> None:
    """A hundred events a day, each of which gets one new delivery that is due now."""
    now = api.clock.freeze()
    endpoint = await tenant.make_webhook_endpoint()
    await rival.run(
        "INSERT INTO webhook_events (organization_id, id, type, actor_type, actor_id, data, created_at)"
        " SELECT %s, 'evn_' || number, 'campaign.created', 'user', 'operator', '{}',"
        " %s - number * interval '14.4 minutes' FROM generate_series(1, 3000) AS number",
        tenant.organization_id,
        now,
    )
    period = {"from": format_timestamp(now - timedelta(days=30)), "to": format_timestamp(now)}
    answer = await replay(tenant, endpoint, **period)
    assert (answer.status, answer.json) == (200, {"replayed_count": 3000})
    rows = await rival.rows(
        "SELECT count(DISTINCT event_id), count(DISTINCT id), min(next_attempt_at), max(next_attempt_at)"
        " FROM webhook_deliveries WHERE status = 'pending'"
    )
    assert rows == [(3000, 3000, now, now)]


async def test_a_replay_sends_what_a_disabled_endpoint_missed(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    await tenant.api.call("PATCH", path, params=tenant.query, json={"enabled": False})
    ids = await make_events(tenant, rival, ctx)
    assert await rival.rows("SELECT FROM webhook_deliveries") == []
    assert (await replay(tenant, endpoint, event_ids=ids)).code == "validation_failed"
    await tenant.api.call("PATCH", path, params=tenant.query, json={"enabled": True})
    assert (await replay(tenant, endpoint, event_ids=ids[1:])).json == {"replayed_count": 2}
    rows = await rival.rows("SELECT event_id, status, attempts FROM webhook_deliveries")
    assert sorted(rows) == sorted((event_id, "pending", 0) for event_id in ids[1:])


async def test_a_replay_leaves_out_what_the_endpoint_does_not_match(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    await tenant.make_webhook_endpoint()
    other = await tenant.make_webhook_endpoint(event_types=["code.issued"])
    elsewhere = await tenant.api.make_project(tenant.organization_id, "Evening show")
    of_project = await tenant.make_webhook_endpoint(project_id=elsewhere)
    ids = await make_events(tenant, rival, ctx)
    for endpoint in (other, of_project):
        assert (await replay(tenant, endpoint, event_ids=ids)).json == {"replayed_count": 0}
        assert (await replay(tenant, endpoint, **ALWAYS)).json == {"replayed_count": 0}


async def test_an_unknown_event_is_replayed_with_none_of_the_others(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    ids = await make_events(tenant, rival, ctx, 1)
    answer = await replay(tenant, endpoint, event_ids=[*ids, "evn_" + "A" * 22])
    assert (answer.status, answer.code) == (404, "webhook_event_not_found")
    assert len(await rival.rows("SELECT FROM webhook_deliveries")) == 1


async def test_a_replay_of_neither_a_period_nor_events_is_refused(tenant: Tenant, subtests: pytest.Subtests) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    begin, end = "2026-11-20T00:00:00.000Z", "2026-11-21T00:00:00.000Z"
    bodies: list[tuple[dict[str, Any], str, str]] = [
        ({}, "", "must have either from and to, or event_ids"),
        ({"from": begin}, "", "must have either from and to, or event_ids"),
        ({"from": begin, "to": begin}, "/to", "must be after from"),
        ({"from": begin, "to": end, "event_ids": ["evn_x"]}, "", "must have either from and to, or event_ids"),
        ({"event_ids": []}, "/event_ids", "List should have at least 1 item after validation, not 0"),
        ({"event_ids": ["evn_x", "evn_x"]}, "/event_ids", "must not name an event twice"),
    ]
    for body, pointer, message in bodies:
        with subtests.test(body=body):
            answer = await replay(tenant, endpoint, **body)
            assert (answer.status, answer.code) == (422, "validation_failed")
            assert answer.json["errors"] == [{"location": "body", "pointer": pointer, "message": message}]


async def test_an_event_with_a_pending_delivery_is_left_out(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    """The first delivery counts too, and so does one that another replay made or that a worker has claimed."""
    endpoint = await tenant.make_webhook_endpoint()
    ids = await make_events(tenant, rival, ctx)
    assert (await replay(tenant, endpoint, **ALWAYS)).json == {"replayed_count": 0}
    await rival.run(
        "UPDATE webhook_deliveries SET status = 'failed', next_attempt_at = NULL WHERE event_id = %s", ids[0]
    )
    assert (await replay(tenant, endpoint, event_ids=ids)).json == {"replayed_count": 1}
    await end_deliveries(rival)
    assert (await replay(tenant, endpoint, **ALWAYS)).json == {"replayed_count": 3}
    assert (await replay(tenant, endpoint, event_ids=ids)).json == {"replayed_count": 0}
    assert await count_pending(rival) == dict.fromkeys(ids, 1)


async def test_what_waits_for_another_endpoint_is_replayed(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    await tenant.make_webhook_endpoint()
    ids = await make_events(tenant, rival, ctx)
    later = await tenant.make_webhook_endpoint()
    assert (await replay(tenant, later, event_ids=ids)).json == {"replayed_count": 3}


async def test_of_two_replays_of_one_period_at_once_one_makes_the_deliveries(
    tenant: Tenant, rival: Rival, ctx: Context, database_url: Secret
) -> None:
    """Also in two processes: the second waits for the counts, and then sees what the first made."""
    endpoint = await tenant.make_webhook_endpoint()
    ids = await make_events(tenant, rival, ctx)
    await end_deliveries(rival)
    async with running_core(core_settings(database_url), tenant.api.clock) as other:
        elsewhere = Tenant(other, tenant.organization_id, tenant.project_id)
        async with rival.holding("LOCK TABLE webhook_deliveries IN SHARE MODE"):
            replaying = [asyncio.create_task(replay(each, endpoint, **ALWAYS)) for each in (tenant, elsewhere)]
            await rival.until_someone_waits(2)
        answers = await asyncio.gather(*replaying)
    assert [answer.status for answer in answers] == [200, 200]
    assert sorted(answer.json["replayed_count"] for answer in answers) == [0, 3]
    assert await count_pending(rival) == dict.fromkeys(ids, 1)


async def test_replays_that_wait_for_each_other_have_one_connection(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    """Otherwise, one organisation could occupy the pool, and everybody else would get 503."""
    endpoint = await tenant.make_webhook_endpoint()
    await make_events(tenant, rival, ctx)
    await end_deliveries(rival)
    async with rival.holding("LOCK TABLE webhook_deliveries IN SHARE MODE"):
        first = await rival.while_waiting(replay(tenant, endpoint, **ALWAYS))
        others = [asyncio.create_task(replay(tenant, endpoint, **ALWAYS)) for _ in range(30)]
        assert (await api.get("/v1/organizations")).status == 200
        assert len(await rival.rows("SELECT FROM pg_locks WHERE NOT granted")) == 1
    answers = await asyncio.gather(first, *others)
    assert Counter(answer.status for answer in answers) == {200: 10, 429: 21}
    assert sum(answer.json.get("replayed_count", 0) for answer in answers) == 3


async def test_a_replay_beside_a_fan_out_makes_no_second_delivery(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    await rival.run("DELETE FROM webhook_acts")
    await tenant.make_campaign()
    async with rival.holding("LOCK TABLE webhook_deliveries IN SHARE MODE"):
        fanning = await rival.while_waiting(fan_out(ctx))
        replaying = asyncio.create_task(replay(tenant, endpoint, **ALWAYS))
        await rival.until_someone_waits(2)
    await fanning
    assert (await replaying).json == {"replayed_count": 0}
    assert list((await count_pending(rival)).values()) == [1]


async def test_a_replay_that_dies_under_way_counts_nothing(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    await make_events(tenant, rival, ctx)
    await end_deliveries(rival)
    async with rival.holding("LOCK TABLE webhook_deliveries IN SHARE MODE"):
        replaying = await rival.while_waiting(replay(tenant, endpoint, **ALWAYS))
        await rival.kill_waiting_sessions()
        assert (await replaying).status == 503
    assert await rival.rows("SELECT FROM webhook_replay_counts") == []
    assert (await replay(tenant, endpoint, **ALWAYS)).json == {"replayed_count": 3}


async def test_an_organisation_replays_ten_times_within_a_minute(
    api: Api, tenant: Tenant, rival: Rival, database_url: Secret
) -> None:
    """To all its endpoints and by all processes together. A replay of nothing counts."""
    api.clock.freeze()
    endpoint, second = await tenant.make_webhook_endpoint(), await tenant.make_webhook_endpoint()
    async with running_core(core_settings(database_url), api.clock) as other:
        elsewhere = Tenant(other, tenant.organization_id, tenant.project_id)
        for each, to in ((tenant, endpoint), (elsewhere, second)):
            for _ in range(5):
                assert (await replay(each, to, **ALWAYS)).json == {"replayed_count": 0}
                api.clock.advance(seconds=2)
        refused = await replay(elsewhere, endpoint, **ALWAYS)
    await insert_events(rival, tenant, range(1), api.clock.now())
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "40")
    api.clock.advance(seconds=39.999)
    refused = await replay(tenant, second, event_ids=["evn_0"])
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert await count_pending(rival) == {}
    stranger = await make_tenant(api)
    assert (await replay(stranger, await stranger.make_webhook_endpoint(), **ALWAYS)).status == 200
    api.clock.advance(milliseconds=1)
    assert (await replay(tenant, endpoint, event_ids=["evn_0"])).json == {"replayed_count": 1}
    assert (await replay(tenant, endpoint, **ALWAYS)).status == 429


async def test_a_refused_replay_does_not_count(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    """Neither one of an unknown event, nor one to an unknown or a disabled endpoint, nor one too many."""
    tenant.api.clock.freeze()
    endpoint, disabled = await tenant.make_webhook_endpoint(), await tenant.make_webhook_endpoint()
    path = f"/v1/webhook-endpoints/{disabled['id']}"
    await tenant.api.call("PATCH", path, params=tenant.query, json={"enabled": False})
    await make_events(tenant, rival, ctx)
    for _ in range(9):
        assert (await replay(tenant, endpoint, **ALWAYS)).status == 200
    for _ in range(2):
        assert (await replay(tenant, {"id": "whe_unknown"}, **ALWAYS)).status == 404
        assert (await replay(tenant, endpoint, event_ids=["evn_unknown"])).status == 404
        assert (await replay(tenant, disabled, **ALWAYS)).status == 422
    assert (await replay(tenant, endpoint, **ALWAYS)).status == 200
    for _ in range(2):
        assert (await replay(tenant, endpoint, **ALWAYS)).status == 429
    tenant.api.clock.advance(minutes=1)
    for _ in range(10):
        assert (await replay(tenant, endpoint, **ALWAYS)).status == 200


async def test_a_day_has_100_000_replayed_deliveries_and_a_replay_that_would_exceed_them_makes_none(
    api: Api, tenant: Tenant, rival: Rival
) -> None:
    api.clock.frozen_at = noon = datetime(2026, 11, 20, 12, 0, 0, 500_000, tzinfo=UTC)
    endpoint, second = await tenant.make_webhook_endpoint(), await tenant.make_webhook_endpoint()
    await insert_events(rival, tenant, range(100_001), noon - timedelta(hours=1))
    refused = await replay(tenant, endpoint, **ALWAYS)
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "43200")
    assert await rival.rows("SELECT FROM webhook_deliveries LIMIT 1") == []

    await rival.run("DELETE FROM webhook_events WHERE id = 'evn_100000'")
    assert (await replay(tenant, endpoint, **ALWAYS)).json == {"replayed_count": 100_000}
    await rival.run("DELETE FROM webhook_deliveries WHERE event_id <> 'evn_0'")
    for body in (ALWAYS, {"event_ids": ["evn_1"]}):
        for to in (endpoint, second):
            assert (await replay(tenant, to, **body)).status == 429
    assert (await replay(tenant, endpoint, event_ids=["evn_0"])).json == {"replayed_count": 0}, "it is pending"
    stranger = await make_tenant(api)
    await insert_events(rival, stranger, range(1), noon)
    to = await stranger.make_webhook_endpoint()
    assert (await replay(stranger, to, **ALWAYS)).json == {"replayed_count": 1}

    api.clock.frozen_at = datetime(2026, 11, 20, 23, 59, 59, 999_000, tzinfo=UTC)
    refused = await replay(tenant, endpoint, event_ids=["evn_1"])
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    api.clock.frozen_at = datetime(2026, 11, 21, tzinfo=UTC)
    assert (await replay(tenant, endpoint, event_ids=["evn_1"])).json == {"replayed_count": 1}
    assert await rival.rows(
        "SELECT day::text, deliveries_count FROM webhook_replay_counts WHERE organization_id = %s",
        tenant.organization_id,
    ) == [("2026-11-21", 1)]


async def test_what_was_replayed_goes_with_the_organisation(tenant: Tenant, rival: Rival) -> None:
    await replay(tenant, await tenant.make_webhook_endpoint(), **ALWAYS)
    assert len(await rival.rows("SELECT FROM webhook_replay_counts")) == 1
    certificate = await organization_of(tenant).certificate()
    assert "replay" not in json.dumps(certificate)
    assert await rival.rows("SELECT FROM webhook_replay_counts") == []
