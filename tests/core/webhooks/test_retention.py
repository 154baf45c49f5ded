"""Events and deliveries are kept for 30 days, and the deliveries of a deleted endpoint for minutes."""

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant
from support.webhooks.replays import ALWAYS, end_deliveries, replay

from soundmark.core.context import Context
from soundmark.core.features.webhooks.fan_out import retention
from soundmark.core.features.webhooks.fan_out.retention import drop_abandoned, forget_events
from soundmark.core.features.webhooks.fan_out.service import fan_out


async def count(rival: Rival) -> tuple[int, int]:
    ((events, deliveries),) = await rival.rows(
        "SELECT (SELECT count(*) FROM webhook_events), (SELECT count(*) FROM webhook_deliveries)"
    )
    return events, deliveries


async def test_what_is_older_than_30_days_is_forgotten_in_bounded_steps(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_AT_ONCE", 2)
    api.clock.freeze()
    await tenant.make_webhook_endpoint()
    for number in range(4):
        await tenant.make_campaign(f"Campaign {number}")
    await fan_out(ctx)
    api.clock.advance(days=1)
    await (await make_tenant(api)).make_webhook_endpoint()
    await fan_out(ctx)
    assert await count(rival) == (6, 6)
    api.clock.advance(days=29)
    assert await forget_events(ctx) == 0
    api.clock.advance(milliseconds=1)
    assert await forget_events(ctx) == 10
    assert await count(rival) == (1, 1)


async def test_an_event_that_was_replayed_is_kept_until_its_delivery_has_ended(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    """Without its event, a delivery could not be attempted, and would stay due."""
    api.clock.freeze()
    endpoint = await tenant.make_webhook_endpoint()
    await fan_out(ctx)
    await end_deliveries(rival)
    api.clock.advance(days=30)
    assert (await replay(tenant, endpoint, **ALWAYS)).json == {"replayed_count": 1}
    api.clock.advance(seconds=1)
    assert await forget_events(ctx) == 1
    assert await count(rival) == (1, 1)
    await end_deliveries(rival)
    assert await forget_events(ctx) == 1
    assert await count(rival) == (0, 1)


async def test_the_deliveries_of_a_deleted_endpoint_are_dropped(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_AT_ONCE", 2)
    other = await make_tenant(api)
    kept, deleted = await tenant.make_webhook_endpoint(), await other.make_webhook_endpoint()
    for number in range(3):
        await other.make_campaign(f"Campaign {number}")
    await fan_out(ctx)
    assert await drop_abandoned(ctx) == 0
    await api.call("DELETE", f"/v1/webhook-endpoints/{deleted['id']}", params=other.query)
    assert await drop_abandoned(ctx) == 4
    assert await rival.rows("SELECT endpoint_id FROM webhook_deliveries") == [(kept["id"],)]
