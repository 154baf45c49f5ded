"""What the deletion of an organisation or a project does to endpoints, and to what waits for them."""

import asyncio

from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.closures import list_mentions, organization_of, project_of
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.features.webhooks.fan_out.service import fan_out


async def test_an_organisation_goes_with_everything_that_waits(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    """Acts, events and deliveries, which no foreign key deletes."""
    other = await make_tenant(api)
    kept = await other.make_webhook_endpoint()
    for project_id in (None, tenant.project_id):
        await tenant.make_webhook_endpoint(project_id=project_id)
    await fan_out(ctx)
    await tenant.make_campaign()

    certificate = await organization_of(tenant).certificate()

    assert certificate["deleted"]["core"]["webhook_endpoints"] == 2
    assert certificate["remaining"]["core"]["webhook_endpoints"] == 0
    assert await list_mentions(rival, tenant.organization_id) == ["deletion_certificates"]
    assert await rival.rows("SELECT endpoint_id, status FROM webhook_deliveries") == [(kept["id"], "pending")]


async def test_a_project_takes_its_own_endpoints_with_it_and_the_others_hear_of_it(
    tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    await tenant.make_webhook_endpoint(project_id=tenant.project_id)
    await rival.run("DELETE FROM webhook_acts")

    certificate = await project_of(tenant).certificate()

    assert certificate["deleted"]["core"]["webhook_endpoints"] == 1
    while await fan_out(ctx):
        pass
    rows = await rival.rows("SELECT endpoint_id, event_type FROM webhook_deliveries ORDER BY event_type")
    assert rows == [(endpoint["id"], f"project.{what}") for what in ("deleted", "deletion_requested")]


async def test_the_last_phase_waits_for_a_fan_out_under_way_and_leaves_nothing(
    tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    await tenant.make_webhook_endpoint()
    async with rival.holding("LOCK TABLE webhook_deliveries IN SHARE MODE"):
        fanning = await rival.while_waiting(fan_out(ctx))
        deleting = asyncio.create_task(organization_of(tenant).delete())
        await rival.until_someone_waits(2)
    assert (await deleting).status == 204
    assert await fanning in {0, 1}
    for table in ("webhook_acts", "webhook_events", "webhook_deliveries"):
        assert await rival.rows(f"SELECT FROM {table}") == []
