"""The names of integrations, which Core keeps: Audience knows none.

A name is stored with the audit intent that creates its integration, and given to the integration when the outcome is
known. Renaming changes nothing in Audience, so it has one phase, and continues while the tenant is being deleted.
"""

from soundmark.core.context import RequestContext
from soundmark.core.domain.audience.integration import Target
from soundmark.core.domain.tenancy.audit import AuditIntent
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.steps import audit
from soundmark.core.steps.tenancy import hold_project, require_project
from soundmark.core.store.audience import integration_names
from soundmark.kit.postgres.transaction import Tx
from soundmark.wire.private.integrations import IntegrationResponse


async def rename_integration(
    ctx: RequestContext, scope: TenantScope, target: Target, *, name: str | None, request_id: str
) -> IntegrationResponse:
    """Change the integration's name, whatever its status; None removes it. Return the integration.

    The name that it has already changes nothing, and is not audited.

    Raises: ProjectNotFound; IntegrationNotFound; AudienceUnavailable.
    Source: contract, section 3.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await require_project(tx, scope, target.project_id)
    integration = await ctx.audience.get_integration(
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
    return integration


async def settle_name(tx: Tx, intent: AuditIntent, integration_id: str | None) -> None:
    """Give the name that was stored with the intent to the integration that it created; None deletes the name.

    Safe to repeat. Comes before the outcome of the intent. Lock order: docs/locks.md.
    """
    if intent.action != "audience.integration_provisioning":
        return
    if integration_id is not None:
        await integration_names.update_created(tx, intent, integration_id)
    await integration_names.delete_requested(tx, intent)


async def _change_name(tx: Tx, scope: TenantScope, target: Target, name: str | None) -> bool:
    if name is None:
        return await integration_names.delete(tx, scope, target.integration_id)
    return await integration_names.insert_or_update(tx, scope, target.project_id, target.integration_id, name=name)
