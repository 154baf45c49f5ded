"""The names of integrations, which Core keeps: Audience knows none.

A name is stored with the audit intent that creates its integration, and given to the integration when the outcome is
known. Renaming changes nothing in Audience, so it has one phase, and continues while the tenant is being deleted.
"""

from soundmark.core.context import RequestContext
from soundmark.core.domain.audience.integration import DescribedIntegration, Target, derive_integration_id
from soundmark.core.domain.tenancy.audit import AuditIntent
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.steps import audit
from soundmark.core.steps.cells import find_audience
from soundmark.core.steps.tenancy import hold_project, require_project
from soundmark.core.store.audience import cells, integration_names
from soundmark.kit.postgres.transaction import Tx
from soundmark.wire.private.problems import IntegrationNotFound


async def rename_integration(
    ctx: RequestContext, scope: TenantScope, target: Target, *, name: str | None, request_id: str
) -> DescribedIntegration:
    """Change the integration's name, whatever its status; None removes it. Return the integration.

    The name that it has already changes nothing, and is not audited.

    Raises: ProjectNotFound; IntegrationNotFound; AudienceUnavailable.
    Source: contract, section 3.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await require_project(tx, scope, target.project_id)
        audience = await find_audience(ctx, tx, scope.organization_id)
    if audience is None:
        raise IntegrationNotFound
    integration = await audience.get_integration(
        scope.organization_id, target.project_id, target.integration_id, request_id=request_id
    )
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_project(tx, scope, target.project_id)
        if await _change_name(tx, scope, target, name):
            await audit.record(
                tx,
                scope,
                ctx.entropy,
                "audience.integration_renamed",
                now=ctx.clock.now(),
                project_id=target.project_id,
                integration_id=target.integration_id,
            )
    return DescribedIntegration(integration, name)


async def settle_creation(tx: Tx, intent: AuditIntent, integration_id: str | None) -> None:
    """Give the name that was stored with the intent to the integration that it created; None if it created none.

    Then the name is deleted, and so is the integration's cell. Safe to repeat. Comes before the outcome of the intent.
    Lock order: docs/locks.md.
    """
    if intent.action != "audience.integration_provisioning":
        return
    if integration_id is None:
        await cells.delete_integration(tx, intent, derive_integration_id(intent.id))
    else:
        await integration_names.update_created(tx, intent, integration_id)
    await integration_names.delete_requested(tx, intent)


async def _change_name(tx: Tx, scope: TenantScope, target: Target, name: str | None) -> bool:
    if name is None:
        return await integration_names.delete(tx, scope, target.integration_id)
    return await integration_names.insert_or_update(tx, scope, target.project_id, target.integration_id, name=name)
