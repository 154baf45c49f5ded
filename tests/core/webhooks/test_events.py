"""Reading events and deliveries."""

from typing import Any

from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant
from support.webhooks.replays import make_events

from soundmark.core.context import Context
from soundmark.core.domain.webhooks.event import WebhookEvent, render_body
from soundmark.core.features.webhooks.fan_out.service import fan_out
from soundmark.kit.text.timestamps import format_timestamp


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
