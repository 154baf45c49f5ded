"""The trace of what an organisation did: each event has that of the request, however many share its transaction."""

import asyncio
import itertools
from typing import Any

import pytest
from support.codes.issuance_queue import IssuanceQueue
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.webhooks.fan_out.expiry import announce_expiries
from soundmark.core.features.webhooks.fan_out.service import fan_out
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.tracing.spans import enter_job

_numbers = itertools.count(1)


def make_traceparent() -> str:
    number = next(_numbers)
    return f"00-{number:032x}-{number:016x}-00"


async def read_traces(rival: Rival, ctx: Context) -> list[tuple[str, str]]:
    """Return the type and the trace of each event."""
    while await fan_out(ctx):
        pass
    rows = await rival.rows("SELECT type, traceparent FROM webhook_events ORDER BY type, traceparent")
    await rival.run("DELETE FROM webhook_events")
    return [(type_, traceparent) for type_, traceparent in rows]


async def test_every_way_to_act_keeps_the_trace(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    campaign, kept = await tenant.make_campaign(), await tenant.make_code()
    await tenant.make_code(campaign_id=campaign["id"])
    await tenant.make_webhook_endpoint()
    await read_traces(rival, ctx)

    async def act(method: str, path: str, types: list[str], **request: Any) -> None:
        traceparent = make_traceparent()
        answer = await tenant.api.call(method, path, headers={"traceparent": traceparent}, **request)
        assert answer.status in (200, 201), answer.body
        assert await read_traces(rival, ctx) == [(type_, traceparent) for type_ in types]

    selection = {"project_id": tenant.project_id, "xr_ids": [kept["xr_id"]]}
    stop = f"/v1/campaigns/{campaign['id']}/stop"
    integration = tenant.integration_body()
    await act("POST", "/v1/codes/revoke-batch", ["code.revoked"], params=tenant.query, json=selection)
    await act("POST", stop, ["campaign.stopped", "code.revoked"], params=tenant.query)
    await act("POST", "/v1/audience/integrations", ["audience.integration_provisioning"], json=integration)
    await act("POST", "/v1/codes", ["code.issued"], json=tenant.code_body())
    await tenant.make_quota(rival, 4)
    await act("POST", "/v1/codes", ["code.issued", *["quota.threshold_reached"] * 2], json=tenant.code_body())


async def test_requests_of_one_transaction_keep_their_own(
    tenant: Tenant, rival: Rival, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = IssuanceQueue(monkeypatch)
    await tenant.make_webhook_endpoint()
    await read_traces(rival, ctx)
    traceparents = [make_traceparent() for _ in range(3)]

    async def issue(traceparent: str, count: int) -> None:
        body = tenant.code_body(count=count)
        answer = await tenant.api.post("/v1/codes/batch", json=body, headers={"traceparent": traceparent})
        assert answer.status == 201

    async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
        first = await rival.while_waiting(issue(traceparents[0], 1))
        others = [asyncio.create_task(issue(traceparent, 2)) for traceparent in traceparents[1:]]
        await queue.until_entered(3)
    await asyncio.gather(first, *others)
    issued = [("code.issued", traceparent) for traceparent in traceparents]
    assert await read_traces(rival, ctx) == [issued[0], issued[1], issued[1], issued[2], issued[2]]


async def test_what_a_job_announces_has_the_trace_of_its_run(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    await tenant.make_webhook_endpoint()
    await tenant.make_code(lifetime_s=60)
    await read_traces(rival, ctx)
    tenant.api.clock.advance(seconds=61)
    traceparent = make_traceparent()
    with enter_job("announce_expiries", "consumer", SystemEntropy(), traceparent):
        assert await announce_expiries(ctx) == 1
    assert await read_traces(rival, ctx) == [("code.expired", traceparent)]
