"""`code.expired`: each Code once, whatever happens to the worker."""

import asyncio
import json
from typing import Any

from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.webhooks.fan_out.expiry import announce_expiries
from soundmark.core.features.webhooks.fan_out.service import fan_out


async def expired(rival: Rival, ctx: Context) -> list[str]:
    """Return the Codes whose expiry was announced, in the order of their ids."""
    while await fan_out(ctx):
        pass
    rows = await rival.rows("SELECT data FROM webhook_events WHERE type = 'code.expired' ORDER BY data")
    return [json.loads(data)["xr_id"] for (data,) in rows]


async def make_codes(tenant: Tenant, *lifetimes_s: float) -> list[dict[str, Any]]:
    return [await tenant.make_code(lifetime_s=lifetime_s) for lifetime_s in lifetimes_s]


async def test_each_code_that_expires_is_announced_once(api: Api, tenant: Tenant, rival: Rival, ctx: Context) -> None:
    await tenant.make_webhook_endpoint()
    soon, later = await make_codes(tenant, 60, 90)
    assert await announce_expiries(ctx) == 0
    api.clock.advance(seconds=61)
    assert [await announce_expiries(ctx) for _ in range(2)] == [1, 0]
    assert await expired(rival, ctx) == [soon["xr_id"]]
    api.clock.advance(seconds=30)
    assert sum(await asyncio.gather(announce_expiries(ctx), announce_expiries(ctx))) == 1
    assert await expired(rival, ctx) == sorted([soon["xr_id"], later["xr_id"]])
    ((actor, project_id),) = await rival.rows(
        "SELECT DISTINCT actor_id, project_id FROM webhook_events WHERE type = 'code.expired'"
    )
    assert (actor, project_id) == ("soundmark", tenant.project_id)


async def test_a_clock_that_was_set_forward_and_back_leaves_no_code_out(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    """What is issued when the clock is right again expires before what was announced too early."""
    api.clock.freeze()
    await tenant.make_webhook_endpoint()
    early = await tenant.make_code(lifetime_s=3600)
    api.clock.advance(hours=2)
    assert await announce_expiries(ctx) == 1
    api.clock.advance(hours=-2)
    code = await tenant.make_code(lifetime_s=60)
    assert await announce_expiries(ctx) == 0
    api.clock.advance(seconds=61)
    assert [await announce_expiries(ctx) for _ in range(2)] == [1, 0]
    assert await expired(rival, ctx) == sorted([code["xr_id"], early["xr_id"]])


async def test_a_revoked_code_does_not_expire(api: Api, tenant: Tenant, rival: Rival, ctx: Context) -> None:
    await tenant.make_webhook_endpoint()
    revoked, other = await make_codes(tenant, 60, 60)
    await tenant.api.post(f"/v1/codes/{revoked['xr_id']}/revoke", params=tenant.query)
    api.clock.advance(seconds=61)
    await announce_expiries(ctx)
    assert await expired(rival, ctx) == [other["xr_id"]]


async def test_a_revocation_under_way_is_waited_for(api: Api, tenant: Tenant, rival: Rival, ctx: Context) -> None:
    """It began before the Code expired, so the Code is revoked, and not expired as well."""
    await tenant.make_webhook_endpoint()
    (code,) = await make_codes(tenant, 60)
    api.clock.advance(seconds=61)
    async with rival.committing("UPDATE codes SET revoked_at = issued_at WHERE xr_id = %s", code["xr_id"]):
        announcing = await rival.while_waiting(announce_expiries(ctx))
    assert await announcing == 0
    assert await expired(rival, ctx) == []


async def test_an_issuance_under_way_is_waited_for(api: Api, tenant: Tenant, rival: Rival, ctx: Context) -> None:
    """Its Codes may expire before they are committed."""
    await tenant.make_webhook_endpoint()
    (code,) = await make_codes(tenant, 60)
    api.clock.advance(seconds=61)
    statement = "SELECT FROM code_entitlements WHERE organization_id = %s FOR NO KEY UPDATE"
    async with rival.holding(statement, tenant.organization_id):
        announcing = await rival.while_waiting(announce_expiries(ctx))
    assert await announcing == 1
    assert await expired(rival, ctx) == [code["xr_id"]]


async def test_nothing_is_lost_while_no_worker_runs(api: Api, tenant: Tenant, rival: Rival, ctx: Context) -> None:
    """What expired before the first endpoint was created is not announced, nor what expired over 30 days ago."""
    (before, _, too_old, recent) = await make_codes(tenant, 60, 86400 * 80, 86400, 86400 * 20)
    api.clock.advance(seconds=61)
    await tenant.make_webhook_endpoint()
    api.clock.advance(days=40)
    await announce_expiries(ctx)
    assert await expired(rival, ctx) == [recent["xr_id"]]
    assert before["xr_id"] != too_old["xr_id"]


async def test_many_that_expire_together_are_several_acts(api: Api, tenant: Tenant, rival: Rival, ctx: Context) -> None:
    await tenant.make_webhook_endpoint()
    (code,) = await make_codes(tenant, 60)
    await rival.run(
        "INSERT INTO codes (organization_id, xr_id, project_id, issuer, issued_at, expires_at, broadcast_token, key_id,"
        " address) SELECT organization_id, 'xr_' || n, project_id, issuer, issued_at, expires_at, 'brd_' || n, key_id,"
        " address FROM codes, generate_series(1, 2500) n WHERE xr_id = %s",
        code["xr_id"],
    )
    api.clock.advance(seconds=61)
    assert await announce_expiries(ctx) == 2501
    sizes = await rival.rows("SELECT cardinality(xr_ids) FROM webhook_acts WHERE type = 'code.expired' ORDER BY 1")
    assert [size for (size,) in sizes] == [501, 1000, 1000]
    assert len(set(await expired(rival, ctx))) == 2501
