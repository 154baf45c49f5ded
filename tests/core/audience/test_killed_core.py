"""A real Core process that is killed after Audience made a change and before the audit log records it."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from support.api.core_settings import OPERATOR_TOKEN
from support.database.rival import Rival
from support.processes.command_server import ForkedCommand
from support.processes.killable import running_core
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.audience.integrations import jobs
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
def core(database_url: Secret, measuring_url: str, tenant: Tenant) -> Iterator[tuple[str, ForkedCommand]]:
    """The URL of another Core process, with the database and the Audience of the shared Core."""
    assert tenant is not None, "the signing keys are there"
    with running_core(database_url, measuring_url) as running:
        yield running


async def test_the_change_of_a_killed_core_is_settled_and_made_once(
    core: tuple[str, ForkedCommand],
    tenant: Tenant,
    rival: Rival,
    measuring: Rival,
    work: Context,
    outcomes: Any,
) -> None:
    """The integration exists and the log records it; nobody received its secret, which can be replaced."""
    url, process = core
    async with (
        httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {OPERATOR_TOKEN}"}, timeout=60) as client,
        contextlib.AsyncExitStack() as held,
    ):
        asking = client.post("/v1/audience/integrations", json=tenant.integration_body())
        async with measuring.holding("LOCK TABLE entitlements, integrations IN EXCLUSIVE MODE"):
            creating = await measuring.while_waiting(asking)
            # The finalisation of the entry waits here.
            await held.enter_async_context(
                rival.holding("SELECT FROM audit_entries WHERE outcome = 'requested' FOR UPDATE")
            )
        await rival.until_someone_waits()
        async with asyncio.timeout(30):
            while await measuring.rows("SELECT count(*) FROM operations") != [(1,)]:  # noqa: ASYNC110 - in PostgreSQL
                await asyncio.sleep(0.01)
        process.kill()
        with pytest.raises(httpx2.HTTPError):
            await creating
    assert await outcomes() == [("provisioning", "requested")]

    tenant.api.clock.advance(seconds=61)
    assert await jobs.settle_intents(work) == 1

    assert await outcomes() == [("provisioning", "completed")]
    listed = await tenant.api.get("/v1/audience/integrations", params=tenant.in_project)
    (integration,) = listed.json["data"]
    assert (await tenant.change_integration("secret", integration["id"])).json["hmac_secret"].startswith("xhm_")
