"""A real Core process that is killed after Audience made a change and before the audit log records it."""

import contextlib
from typing import Any

from support.database.rival import Rival
from support.processes.killable import Killable
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.audience.integrations import jobs


async def test_the_change_of_a_killed_core_is_settled_and_made_once(
    killable: Killable, tenant: Tenant, rival: Rival, measuring: Rival, work: Context, outcomes: Any
) -> None:
    """The integration exists and the log records it; nobody received its secret, which can be replaced."""
    finalising = "SELECT FROM audit_entries WHERE outcome = 'requested' FOR UPDATE"
    async with killable.core() as core, contextlib.AsyncExitStack() as dying:
        async with measuring.holding("LOCK TABLE entitlements, integrations IN EXCLUSIVE MODE"):
            core.lose("POST", "/v1/audience/integrations", json=tenant.integration_body())
            await measuring.until_someone_waits()
            await dying.enter_async_context(core.dying_while(rival, finalising))
        await measuring.until_rows("SELECT count(*) FROM operations", (1,))
    assert await outcomes() == [("provisioning", "requested")]

    tenant.api.clock.advance(seconds=61)
    assert await jobs.settle_intents(work) == 1

    assert await outcomes() == [("provisioning", "completed")]
    listed = await tenant.api.get("/v1/audience/integrations", params=tenant.in_project)
    (integration,) = listed.json["data"]
    assert await rival.rows("SELECT integration_id, cell FROM integration_cells") == [(integration["id"], "main")]
    assert (await tenant.change_integration("secret", integration["id"])).json["hmac_secret"].startswith("xhm_")
