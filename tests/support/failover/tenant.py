"""An organisation for the clients of the ledger, with a contract for measuring and a Code that is measured."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx2
import psycopg

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp
from support.failover.ledger import Ledger, Measured, contract_body
from support.processes.killable import OPERATOR

_CONTRACT_ENDS_AT: Final = datetime(2098, 1, 1, tzinfo=UTC)
_CARRIED_S: Final = 240.0  # A job of a worker that died goes to another one within two minutes, and may be repeated.
_RAISE_QUOTAS: Final = """
UPDATE plans SET monthly_code_quota = 1000000 WHERE product = 'codes';
UPDATE plans SET monthly_event_quota = 1000000 WHERE product = 'audience'
"""


async def make_ledger(url: str, core_database_url: Secret, *, seed: int) -> Ledger:
    """Make an organisation that may issue and measure a million times, and clients of the Core at `url`."""
    async with await psycopg.AsyncConnection.connect(core_database_url.reveal()) as connection:
        await connection.execute(_RAISE_QUOTAS)
    async with httpx2.AsyncClient(base_url=url, headers=OPERATOR, timeout=30, trust_env=False) as client:
        organization_id = (await _send(client, "POST", "/v1/organizations", {"name": "Faults"}))["id"]
        project = {"organization_id": organization_id, "name": "Faults"}
        tenant = {
            "organization_id": organization_id,
            "project_id": (await _send(client, "POST", "/v1/projects", project))["id"],
        }
        contract = f"/v1/billing/admin/audience-contracts/{organization_id}"
        await _send(client, "PUT", contract, contract_body(_CONTRACT_ENDS_AT))
        measured = await _make_measured_code(client, tenant)
    return Ledger([url], OPERATOR, tenant, measured, random.Random(seed))  # noqa: S311 - no secret


async def _make_measured_code(client: httpx2.AsyncClient, tenant: dict[str, str]) -> Measured:
    body = {**tenant, "mode": "contract", "retention_days": 14}
    integration = await _send(client, "POST", "/v1/audience/integrations", body)
    code = {
        **tenant,
        "issuer": "Faults",
        "expires_at": format_timestamp(datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)),
        "intent": {"type": "link", "action": "open", "resource": {"url": "https://example.org"}},
        "audience": {"enabled": True, "integration_id": integration["id"]},
    }
    issued = await _send(client, "POST", "/v1/codes", code)
    return Measured(integration["id"], integration["hmac_secret"], issued["broadcast_token"])


async def _send(client: httpx2.AsyncClient, method: str, path: str, body: dict[str, Any]) -> Any:
    response = await client.request(method, path, json=body)
    assert response.is_success, response.text
    return response.json()


async def verify_audit_log(ledger: Ledger, url: str) -> None:
    """Assert that the chain of audit entries is whole, and has one for each Code."""
    query = {"organization_id": ledger.tenant["organization_id"]}
    async with httpx2.AsyncClient(headers=OPERATOR, timeout=60, trust_env=False) as client:
        answer = (await client.get(f"{url}/v1/audit-log/verification", params=query)).json()
    assert answer["verified"] is True, answer
    assert answer["entries"] >= len(ledger.codes)


async def verify_contract(ledger: Ledger, audience_database_url: Secret) -> None:
    """Assert that Core's worker carries the last contract that was acknowledged to Audience."""
    async with (
        await psycopg.AsyncConnection.connect(audience_database_url.reveal(), autocommit=True) as connection,
        asyncio.timeout(_CARRIED_S),
    ):
        while True:
            cursor = await connection.execute("SELECT ends_at FROM entitlements")
            if await cursor.fetchall() == [(ledger.contract_ends_at,)]:
                return
            await asyncio.sleep(0.1)
