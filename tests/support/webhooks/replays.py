"""Events that endpoints may want again, and replays of them."""

from datetime import datetime
from typing import Any, Final

from soundmark.core.context import Context
from soundmark.core.features.webhooks.fan_out.service import fan_out
from support.api.core_client import Answer
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

ALWAYS: Final = {"from": "2000-01-01T00:00:00.000Z", "to": "2099-01-01T00:00:00.000Z"}


async def make_events(tenant: Tenant, rival: Rival, ctx: Context, count: int = 3) -> list[str]:
    """Make an event for each of several new campaigns; return their ids, oldest first."""
    await rival.run("DELETE FROM webhook_acts")
    for number in range(count):
        await tenant.make_campaign(f"Campaign {number}")
        tenant.api.clock.advance(seconds=1)
        await fan_out(ctx)
    rows = await rival.rows("SELECT id FROM webhook_events ORDER BY created_at")
    return [event_id for (event_id,) in rows]


async def insert_events(rival: Rival, tenant: Tenant, numbers: range, at: datetime) -> None:
    """Insert so many events of one moment, without deliveries."""
    await rival.run(
        "INSERT INTO webhook_events (organization_id, id, type, actor_type, actor_id, data, created_at)"
        " SELECT %s, 'evn_' || number, 'campaign.created', 'user', 'operator', '{}', %s"
        " FROM generate_series(%s::int, %s::int) AS number",
        tenant.organization_id,
        at,
        numbers.start,
        numbers.stop - 1,
    )


async def end_deliveries(rival: Rival) -> None:
    """Have every pending delivery succeed."""
    await rival.run(
        "UPDATE webhook_deliveries SET status = 'delivered', next_attempt_at = NULL, attempts = 1"
        " WHERE status = 'pending'"
    )


async def replay(tenant: Tenant, endpoint: dict[str, Any], **body: Any) -> Answer:
    path = f"/v1/webhook-endpoints/{endpoint['id']}/replay"
    return await tenant.api.post(path, params=tenant.query, json=body)
