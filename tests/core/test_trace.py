"""One trace, from a request to Core through Audience, a job and a webhook, in real processes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
from support.billing.subscriptions import CONTRACT_PLAN
from support.database.rival import Rival
from support.processes.killable import OPERATOR, running_audience, running_core, running_worker
from support.processes.up_process import until
from support.tenancy.tenant import Tenant
from support.webhooks.consumer import running_consumer

from soundmark.kit.crypto.secret import Secret

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACE = {"traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-00", "tracestate": "congo=t61rcWkgMzE"}
CHANGED = "billing.audience_contract_changed"
_PATIENCE_S = 60


async def test_an_id_is_in_three_logs_and_in_the_webhook(
    tenant: Tenant, rival: Rival, database_url: Secret, beside_core_url: Secret, tmp_path: Path
) -> None:
    """A contract is changed at Core, a job carries it to Audience, and a webhook announces it."""
    logs = {name: str(tmp_path / name) for name in ("core", "audience", "worker")}
    changes = {"webhook_allow_loopback": "true"}
    await tenant.give_cell(rival)  # Without one, no Audience needs to know of the contract.
    async with running_consumer() as consumer:
        with (
            running_audience(beside_core_url, log=logs["audience"]) as (audience_url, _),
            running_core(database_url, audience_url, log=logs["core"], **changes) as (url, _),
            running_worker(database_url, audience_url, log=logs["worker"], **changes),
        ):
            await change_contract(url, tenant, consumer.url)
            logged = Path(logs["worker"])
            await asyncio.to_thread(until, lambda: "entitlement_projected" in logged.read_text(), _PATIENCE_S)
            while CHANGED not in consumer.types:
                await consumer.until_arrived(len(consumer.messages) + 1)
    message = consumer.messages[consumer.types.index(CHANGED)]
    assert message.headers["traceparent"] == TRACE["traceparent"]
    assert "tracestate" not in message.headers
    core, audience, worker = (read_log(logs[name]) for name in ("core", "audience", "worker"))
    assert [line["trace_id"] for line in core if line.get("method") == "PUT"] == [TRACE_ID]
    assert [line["trace_id"] for line in audience if line.get("method") == "PUT"] == [TRACE_ID]
    assert [line["trace_id"] for line in worker if line["event"] == "entitlement_projected"] == [TRACE_ID]


async def change_contract(url: str, tenant: Tenant, endpoint_url: str) -> None:
    async with httpx2.AsyncClient(base_url=url, headers=OPERATOR) as client:
        endpoint = tenant.webhook_body(url=f"{endpoint_url}/hooks")
        assert (await client.post("/v1/webhook-endpoints", json=endpoint)).status_code == 201
        contract = {"plan_id": CONTRACT_PLAN, "contract_reference": "C-1", "status": "active"}
        path = f"/v1/billing/admin/audience-contracts/{tenant.organization_id}"
        assert (await client.put(path, json=contract, headers=TRACE)).status_code == 200


def read_log(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(log).read_text("utf-8").splitlines()]
