"""Reading events and deliveries, and sending events again."""

import json
from datetime import timedelta
from typing import Any

import pytest
from support.core_client import Answer, Api
from support.rival import Rival
from support.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.webhooks.event import WebhookEvent, render_body
from soundmark.core.features.webhooks.fan_out.service import fan_out
from soundmark.kit.text.timestamps import format_timestamp


async def make_events(tenant: Tenant, rival: Rival, ctx: Context, count: int = 3) -> list[str]:
    """Make an event for each of several new campaigns; return their ids, oldest first."""
    await rival.run("DELETE FROM webhook_acts")
    for number in range(count):
        await tenant.make_campaign(f"Campaign {number}")
        tenant.api.clock.advance(seconds=1)
        await fan_out(ctx)
    rows = await rival.rows("SELECT id FROM webhook_events ORDER BY created_at")
    return [event_id for (event_id,) in rows]


async def replay(tenant: Tenant, endpoint: dict[str, Any], **body: Any) -> Answer:
    path = f"/v1/webhook-endpoints/{endpoint['id']}/replay"
    return await tenant.api.post(path, params=tenant.query, json=body)


async def list_page(tenant: Tenant, endpoint: dict[str, Any], **query: str) -> Answer:
    path = f"/v1/webhook-endpoints/{endpoint['id']}/deliveries"
    return await tenant.api.get(path, params={**tenant.query, **query})


async def test_an_event_is_read_as_the_bytes_that_are_sent(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    await tenant.make_webhook_endpoint()
    now = api.clock.freeze()
    await rival.run("DELETE FROM webhook_acts")
    campaign = await tenant.make_campaign('Früh & "spät"')
    await fan_out(ctx)
    ((stored),) = await rival.rows(
        "SELECT organization_id, id, project_id, type, actor_type, actor_id, data, created_at FROM webhook_events"
    )
    answer = await api.get(f"/v1/webhook-events/{stored[1]}", params=tenant.query)
    assert (answer.status, answer.body) == (200, render_body(WebhookEvent(*stored)))
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json) == ["type", "timestamp", "data"]
    assert answer.json == {
        "type": "campaign.created",
        "timestamp": format_timestamp(now),
        "data": {
            "organization_id": tenant.organization_id,
            "project_id": tenant.project_id,
            "actor": {"type": "user", "id": "operator"},
            "campaign_id": campaign["id"],
            "name": 'Früh & "spät"',
            "starts_at": None,
            "ends_at": None,
        },
    }


async def test_the_pages_of_deliveries_hold_each_once_while_more_are_made(
    tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    await make_events(tenant, rival, ctx, 5)
    expected = await rival.rows("SELECT id FROM webhook_deliveries ORDER BY created_at DESC, id DESC")
    seen, cursor = [], {}
    while True:
        page = await list_page(tenant, endpoint, limit="2", **cursor)
        seen += [entry["id"] for entry in page.json["data"]]
        if page.json["next_cursor"] is None:
            break
        cursor = {"cursor": page.json["next_cursor"]}
        await tenant.make_campaign(f"Another {len(seen)}")
        await fan_out(ctx)
        await rival.run("UPDATE webhook_deliveries SET status = 'delivered', next_attempt_at = NULL, attempts = 1")
    assert [(identity,) for identity in seen] == expected


async def test_deliveries_are_listed_by_status(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    _, _, newest = await make_events(tenant, rival, ctx)
    await rival.run(
        "UPDATE webhook_deliveries SET status = 'failed', next_attempt_at = NULL, attempts = 8, last_status_code = 500,"
        " last_error = 'The response was 500.' WHERE event_id = %s",
        newest,
    )
    (failed,) = (await list_page(tenant, endpoint, status="failed")).json["data"]
    assert (failed["event_id"], failed["event_type"], failed["status"]) == (newest, "campaign.created", "failed")
    assert (failed["attempts"], failed["last_status_code"], failed["next_attempt_at"]) == (8, 500, None)
    assert failed["last_error"] == "The response was 500."
    assert len((await list_page(tenant, endpoint, status="pending")).json["data"]) == 2
    assert (await list_page(tenant, endpoint, status="sent")).code == "validation_failed"


async def test_a_replayed_period_begins_with_its_first_moment_and_ends_before_its_last(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    api.clock.freeze()
    endpoint = await tenant.make_webhook_endpoint()
    started = api.clock.now()
    ids = await make_events(tenant, rival, ctx)
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
    month = {"from": "2000-01-01T00:00:00.000Z", "to": "2099-01-01T00:00:00.000Z"}
    for endpoint in (other, of_project):
        assert (await replay(tenant, endpoint, event_ids=ids)).json == {"replayed_count": 0}
        assert (await replay(tenant, endpoint, **month)).json == {"replayed_count": 0}


async def test_an_unknown_event_is_replayed_with_none_of_the_others(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    ids = await make_events(tenant, rival, ctx, 1)
    answer = await replay(tenant, endpoint, event_ids=[*ids, "evn_" + "A" * 22])
    assert (answer.status, answer.code) == (404, "webhook_event_not_found")
    assert len(await rival.rows("SELECT FROM webhook_deliveries")) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"from": "2026-11-20T00:00:00.000Z"},
        {"from": "2026-11-20T00:00:00.000Z", "to": "2026-11-20T00:00:00.000Z"},
        {"from": "2026-11-20T00:00:00.000Z", "to": "2026-11-21T00:00:00.000Z", "event_ids": ["evn_x"]},
        {"event_ids": []},
        {"event_ids": ["evn_x", "evn_x"]},
        {"event_ids": [f"evn_{number}" for number in range(101)]},
        {"from": None, "to": None},
    ],
    ids=lambda body: json.dumps(body)[:60],
)
async def test_a_replay_of_neither_a_period_nor_events_is_refused(tenant: Tenant, body: dict[str, Any]) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    answer = await replay(tenant, endpoint, **body)
    assert (answer.status, answer.code) == (422, "validation_failed")
