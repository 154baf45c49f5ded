"""Commands on Audience integrations.

Audience has a database of its own, so what changes an integration has three phases:

1. The audit log tells, as `requested`, what is asked for. The transaction holds the organisation and the project open:
   whoever closes one of them waits for it, or is seen.
2. Audience is asked, with the entry's id as that of the operation, outside any transaction.
3. The entry is finalised. Where that fails, or the process dies before it, a job asks Audience what became of it
   (`jobs`); what was answered is never kept back for it, since a secret is answered once.

Of an answer that did not come it is not known whether the operation was done, so its entry stays as it is for the job.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import structlog

from soundmark.core.context import RequestContext
from soundmark.core.domain.audience.integration import Entitlement, IntegrationSecret, may_be_integration_id
from soundmark.core.domain.tenancy.audit import AuditIntent, FinalOutcome, IntentAction
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import (
    AudienceUnavailable,
)
from soundmark.core.steps import audit
from soundmark.core.steps.tenancy import hold_open_project, require_project
from soundmark.core.store.audience import entitlements as audience_entitlements
from soundmark.core.store.codes import signing_keys
from soundmark.core.store.tenancy import audit as entries
from soundmark.kit.crypto.signing import PublicKey
from soundmark.kit.http.problems import FieldError, Problem, ValidationFailed
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Page, Position, cut_page
from soundmark.wire.audience_limits import DEMO_RETENTION_DAYS_MAX
from soundmark.wire.private.integrations import (
    ChangeRetentionRequest,
    CoreKeyResponse,
    CreateIntegrationRequest,
    IntegrationResponse,
    RetentionResponse,
)
from soundmark.wire.private.parts import CoreKey, ProjectQuery
from soundmark.wire.private.problems import EntitlementRequired, IntegrationNotFound
from soundmark.wire.shape import AudienceMode

_log: Final = structlog.get_logger()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewIntegration:
    """What a caller asks to be created."""

    project_id: str
    mode: AudienceMode
    retention_days: int


@dataclass(frozen=True, slots=True)
class Target:
    """An integration as a caller names it: its project and its id."""

    project_id: str
    integration_id: str


async def create_integration(
    ctx: RequestContext, scope: TenantScope, wanted: NewIntegration, *, request_id: str
) -> IntegrationSecret:
    """A new, active integration of the project exists; its HMAC secret is in the answer and nowhere else.

    It trusts the key that Core signs with. Where a rotation is about to replace that one it trusts the coming one, and
    for seven more minutes the one that signs until then.

    Raises: ProjectNotFound; ValidationFailed for a demo that keeps longer than demos do; EntitlementRequired;
        ResourceDeletionInProgress; AudienceUnavailable.
    Source: API v1, "Audience control" and "Audience integration".
    """
    if wanted.mode == "demo":
        _judge_demo(wanted.retention_days)
    key = _core_key(await ctx.live_keyring.key_that_signs())
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_open_project(tx, scope, wanted.project_id)
        entitlement = await _entitlement(ctx, tx, scope, wanted.mode)
        intent = await audit.request(
            tx,
            scope,
            ctx.entropy,
            action="audience.integration_provisioning",
            now=ctx.clock.now(),
            project_id=wanted.project_id,
            metadata={"mode": wanted.mode, "retention_days": wanted.retention_days},
        )
    request = CreateIntegrationRequest(
        organization_id=scope.organization_id,
        project_id=wanted.project_id,
        mode=wanted.mode,
        retention_days=wanted.retention_days,
        core_key=key,
        entitlement=None if entitlement is None else entitlement.terms(),
    )
    creating = ctx.audience.create_integration(request, operation_id=intent.id, request_id=request_id)
    created, trusted = await _carried_out(ctx, intent, _caught_up(ctx, key, creating, request_id))
    return replace(created, integration=created.integration.model_copy(update={"core_key_id": trusted.key_id}))


async def list_integrations(  # noqa: PLR0913 - whose, from where and how many
    ctx: RequestContext, scope: TenantScope, project_id: str, *, before: Position | None, limit: int, request_id: str
) -> Page[IntegrationResponse]:
    """The integrations of one project, newest first, revoked ones too.

    Raises: ProjectNotFound, also for one that the caller is not confined to; AudienceUnavailable.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await require_project(tx, scope, project_id)
    rows = await ctx.audience.list_integrations(
        _project(scope, project_id), before=before, limit=limit + 1, request_id=request_id
    )
    return cut_page(rows, limit, lambda row: Position(row.created_at, row.id))


async def revoke_integration(
    ctx: RequestContext, scope: TenantScope, target: Target, *, request_id: str
) -> IntegrationResponse:
    """The integration measures nothing any more, for good; what it measured stays reportable within its retention.

    One that is revoked already is answered unchanged.

    Raises: ProjectNotFound; IntegrationNotFound; ResourceDeletionInProgress; AudienceUnavailable.
    Source: API v1, "Audience control".
    """
    intent = await _requested(ctx, scope, target, "audience.integration_revocation", {})
    revoking = ctx.audience.revoke_integration(
        _project(scope, target.project_id), target.integration_id, operation_id=intent.id, request_id=request_id
    )
    return await _carried_out(ctx, intent, revoking)


async def rotate_secret(
    ctx: RequestContext, scope: TenantScope, target: Target, *, request_id: str
) -> IntegrationSecret:
    """The integration has another HMAC secret, which is in the answer and nowhere else; the one before counts no more.

    Raises: ProjectNotFound; IntegrationNotFound; IntegrationRevoked; ResourceDeletionInProgress; AudienceUnavailable.
    Source: API v1, "Audience control".
    """
    intent = await _requested(ctx, scope, target, "audience.integration_secret_rotation", {})
    rotating = ctx.audience.rotate_secret(
        _project(scope, target.project_id), target.integration_id, operation_id=intent.id, request_id=request_id
    )
    return await _carried_out(ctx, intent, rotating)


async def change_retention(
    ctx: RequestContext, scope: TenantScope, target: Target, *, retention_days: int, request_id: str
) -> RetentionResponse:
    """The integration keeps what it measures for another number of days; what is older is deleted at once, for good.

    Which mode it is of is asked of Audience, behind the intent: the entitlement of that mode must hold.

    Raises: ProjectNotFound; IntegrationNotFound; IntegrationRevoked; ValidationFailed for a demo that would keep longer
        than demos do; EntitlementRequired; ResourceDeletionInProgress; AudienceUnavailable.
    Source: API v1, "Audience control".
    """
    changes = {"retention_days": retention_days}
    intent = await _requested(ctx, scope, target, "audience.integration_retention_update", changes)
    try:
        await _judge_retention(ctx, scope, target, retention_days, request_id)
    except Problem:
        await _finalised(ctx, intent, "failed")  # Nothing was asked for that would change anything.
        raise
    changing = ctx.audience.change_retention(
        _project(scope, target.project_id),
        target.integration_id,
        ChangeRetentionRequest(retention_days=retention_days),
        operation_id=intent.id,
        request_id=request_id,
    )
    return await _carried_out(ctx, intent, changing)


async def replace_core_key(
    ctx: RequestContext, scope: TenantScope, target: Target, *, request_id: str
) -> CoreKeyResponse:
    """The integration trusts the key that Core signs with, and for seven minutes more the one that it trusted before.

    While a rotation is under way it is the key that comes.

    Raises: ProjectNotFound; IntegrationNotFound; IntegrationRevoked; ResourceDeletionInProgress; AudienceUnavailable.
    Source: API v1, "Audience control".
    """
    key = _core_key(await ctx.live_keyring.key_to_trust())
    told = {"core_key_id": key.key_id}
    intent = await _requested(ctx, scope, target, "audience.integration_core_key_update", told)
    replacing = ctx.audience.replace_core_key(
        _project(scope, target.project_id), target.integration_id, key, operation_id=intent.id, request_id=request_id
    )
    replaced, trusted = await _carried_out(ctx, intent, _caught_up(ctx, key, replacing, request_id))
    return replaced.model_copy(update={"core_key_id": trusted.key_id})


async def _requested(
    ctx: RequestContext, scope: TenantScope, target: Target, action: IntentAction, told: Mapping[str, Any]
) -> AuditIntent:
    """Phase 1, for an integration that is there already."""
    if not may_be_integration_id(target.integration_id):
        await _require_project(ctx, scope, target.project_id)
        raise IntegrationNotFound
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_open_project(tx, scope, target.project_id)
        return await audit.request(
            tx,
            scope,
            ctx.entropy,
            action=action,
            now=ctx.clock.now(),
            project_id=target.project_id,
            metadata={"integration_id": target.integration_id, **told},
        )


async def _require_project(ctx: RequestContext, scope: TenantScope, project_id: str) -> None:
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_open_project(tx, scope, project_id)


async def _carried_out(ctx: RequestContext, intent: AuditIntent, asking: Awaitable[T]) -> T:
    """Phases 2 and 3."""
    try:
        done = await asking
    except AudienceUnavailable:
        raise
    except Problem:
        await _finalised(ctx, intent, "failed")
        raise
    await _finalised(ctx, intent, "completed")
    return done


async def _finalised(ctx: RequestContext, intent: AuditIntent, outcome: FinalOutcome) -> None:
    """Phase 3. Never fails: whoever asked has to be answered what Audience did."""
    try:
        async with ctx.db.transaction(tenant=intent.organization_id) as tx:
            await entries.update_outcome(tx, intent, outcome=outcome, now=ctx.clock.now())
    except Exception as error:  # noqa: BLE001 - whatever it was, the answer may hold what is told only once
        _log.warning("audit_intent_left", entry_id=intent.id, outcome=outcome, error=type(error).__name__)


async def _judge_retention(
    ctx: RequestContext, scope: TenantScope, target: Target, retention_days: int, request_id: str
) -> None:
    integration = await ctx.audience.get_integration(
        scope.organization_id, target.project_id, target.integration_id, request_id=request_id
    )
    if integration.mode == "demo":
        _judge_demo(retention_days)
        return
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await _entitlement(ctx, tx, scope, integration.mode)


async def _entitlement(ctx: RequestContext, tx: Tx, scope: TenantScope, mode: AudienceMode) -> Entitlement | None:
    """What entitles to the mode now; None for a demo, which everybody may have.

    Raises: EntitlementRequired.
    """
    if mode == "demo":
        return None
    entitlement = await audience_entitlements.find(tx, scope.organization_id, mode)
    if entitlement is None or not entitlement.holds(ctx.clock.now()):
        raise EntitlementRequired
    return entitlement


def _judge_demo(retention_days: int) -> None:
    if retention_days > DEMO_RETENTION_DAYS_MAX:
        message = f"must be at most {DEMO_RETENTION_DAYS_MAX} for a demo"
        raise ValidationFailed(errors=(FieldError("body", "/retention_days", message),))


def _project(scope: TenantScope, project_id: str) -> ProjectQuery:
    return ProjectQuery(organization_id=scope.organization_id, project_id=project_id)


def _core_key(key: PublicKey) -> CoreKey:
    return CoreKey.from_bytes(key.key_id, key.public_key)


async def _caught_up(ctx: RequestContext, given: CoreKey, asking: Awaitable[T], request_id: str) -> tuple[T, CoreKey]:
    """Phase 2 of what gives an integration a key, which a rotation may have overtaken; and the key that it trusts."""
    done = await asking
    # Before the entry is finalised: of one that was left `requested` the job sees to the key.
    return done, await _catch_up(ctx, given, request_id)


async def _catch_up(ctx: RequestContext, given: CoreKey, request_id: str) -> CoreKey:
    """The integration trusts the coming key also where a rotation began after the one that it was `given` was chosen.

    A rotation that begins later finds the integration there. Never fails, as `_finalised`; the worker makes up for it.
    """
    try:
        key = _core_key(await ctx.live_keyring.key_to_trust())
        if key.key_id == given.key_id:
            return given
        async with ctx.db.transaction() as tx:
            await signing_keys.lock_all(tx)
            await signing_keys.update_pushed(tx, key.key_id, pushed_at=None)
        await ctx.audience.push_everywhere(key, request_id=request_id)
    except Exception as error:  # noqa: BLE001 - as above
        _log.warning("core_key_not_caught_up", error=type(error).__name__)
        return given
    return key
