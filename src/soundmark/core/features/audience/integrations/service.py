"""Commands on Audience integrations.

Audience has a database of its own, so what changes an integration has three phases:

1. Write an audit entry with the outcome `requested`. The transaction holds the organisation and the project open, so a
   closure waits for it or is seen by it.
2. Call Audience, outside any transaction, with the entry's id as the operation's id.
3. Finalise the entry. If that fails, or the process dies before it, a job asks Audience for the outcome (`jobs`). The
   caller gets Audience's response all the same, because a secret is answered only once.

If Audience's response is lost, nobody knows whether the operation happened, so its entry stays `requested` for the job.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import structlog

from soundmark.core.channel.audience import AudienceChannel
from soundmark.core.context import RequestContext
from soundmark.core.domain.audience.integration import (
    DescribedIntegration,
    Entitlement,
    IntegrationSecret,
    Target,
    derive_integration_id,
    may_be_integration_id,
)
from soundmark.core.domain.billing.subscription import find_best
from soundmark.core.domain.tenancy.audit import AuditIntent, FinalOutcome, IntentAction
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.audience.integrations.core_keys import request_push
from soundmark.core.features.audience.integrations.names import settle_creation
from soundmark.core.problems import AudienceUnavailable
from soundmark.core.steps import audit
from soundmark.core.steps.cells import find_audience, propose_cell
from soundmark.core.steps.entitlement import refresh_entitlement
from soundmark.core.steps.tenancy import hold_active_project, hold_authority, hold_open_project, require_project
from soundmark.core.store.audience import cells, integration_names
from soundmark.core.store.billing import subscriptions
from soundmark.core.store.tenancy import audit as entries
from soundmark.kit.crypto.signing import PublicKey
from soundmark.kit.http.responses.problems import FieldError, Problem, ValidationFailed
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
class RequestedChange:
    """A change after phase 1: its audit intent, the Audience that makes it, and what Core knows of the integration."""

    intent: AuditIntent
    audience: AudienceChannel
    name: str | None

    def describe(self, integration: IntegrationResponse) -> DescribedIntegration:
        """Return the integration, as Audience answered it, with what Core knows of it."""
        return DescribedIntegration(integration, self.name)


@dataclass(frozen=True, slots=True)
class NewIntegration:
    """The integration that a caller wants to create."""

    project_id: str
    mode: AudienceMode
    retention_days: int
    name: str | None


async def create_integration(
    ctx: RequestContext, scope: TenantScope, new: NewIntegration, *, request_id: str
) -> IntegrationSecret:
    """Create an active integration of the project; its HMAC secret is in the response and nowhere else.

    The integration trusts the key that Core signs with. During a rotation it trusts the new key, and for seven more
    minutes the key that Core still signs with.

    Raises: ProjectNotFound; ValidationFailed for a demo whose retention is too long; EntitlementRequired;
        ResourceDeletionInProgress; AudienceUnavailable.
    Source: API v1, "Audience control" and "Audience integration".
    """
    if new.mode == "demo":
        _judge_demo(new.retention_days)
    key = _core_key(await ctx.live_keyring.key_that_signs())
    proposed_cell = await propose_cell(ctx, scope.organization_id)
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        if proposed_cell is not None:
            await hold_authority(tx, scope)
            await cells.update_assigned(tx, scope.organization_id, proposed_cell)
        await hold_active_project(tx, scope, new.project_id)
        audience = await find_audience(ctx, tx, scope.organization_id)
        assert audience is not None, "an open organisation was just given a cell, or had one"
        entitlement = await _find_entitlement(ctx, tx, scope, new.mode)
        intent = await audit.request(
            tx,
            scope,
            ctx.entropy,
            "audience.integration_provisioning",
            now=ctx.clock.now(),
            project_id=new.project_id,
            mode=new.mode,
            retention_days=new.retention_days,
        )
        integration_id = derive_integration_id(intent.id)
        await cells.insert_integration(tx, intent, integration_id)
        if new.name is not None:
            await integration_names.insert_requested(tx, intent, name=new.name)
    request = CreateIntegrationRequest(
        integration_id=integration_id,
        organization_id=scope.organization_id,
        project_id=new.project_id,
        mode=new.mode,
        retention_days=new.retention_days,
        core_key=key,
        entitlement=None if entitlement is None else entitlement.terms(),
    )
    creating = audience.create_integration(request, operation_id=intent.id, request_id=request_id)
    creating_trusted = _await_and_catch_up(ctx, audience, key, creating, request_id)
    created, trusted = await _carry_out(ctx, intent, creating_trusted, get_id=lambda made: made[0].integration.id)
    integration = created.integration.model_copy(update={"core_key_id": trusted.key_id})
    return IntegrationSecret(DescribedIntegration(integration, new.name), created.hmac_secret)


async def list_integrations(
    ctx: RequestContext, scope: TenantScope, project_id: str, *, before: Position | None, limit: int, request_id: str
) -> Page[DescribedIntegration]:
    """Return the integrations of one project, newest first, revoked ones included.

    Raises: ProjectNotFound; AudienceUnavailable.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await require_project(tx, scope, project_id)
        audience = await find_audience(ctx, tx, scope.organization_id)
    if audience is None:
        return Page([], None)
    rows = await audience.list_integrations(
        _project(scope, project_id), before=before, limit=limit + 1, request_id=request_id
    )
    page = cut_page(rows, limit, lambda row: Position(row.created_at, row.id))
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        names = await integration_names.find_many(tx, scope, [row.id for row in page.entries])
    described = [DescribedIntegration(row, names.get(row.id)) for row in page.entries]
    return Page(described, page.next_position)


async def revoke_integration(
    ctx: RequestContext, scope: TenantScope, target: Target, *, request_id: str
) -> DescribedIntegration:
    """Revoke the integration for good; its events can still be reported within its retention.

    A revoked integration is returned unchanged.

    Raises: ProjectNotFound; IntegrationNotFound; ResourceDeletionInProgress; AudienceUnavailable.
    Source: API v1, "Audience control".
    """
    change = await _request(ctx, scope, target, "audience.integration_revocation", {})
    revoking = change.audience.revoke_integration(
        _project(scope, target.project_id), target.integration_id, operation_id=change.intent.id, request_id=request_id
    )
    return change.describe(await _carry_out(ctx, change.intent, revoking))


async def rotate_secret(
    ctx: RequestContext, scope: TenantScope, target: Target, *, request_id: str
) -> IntegrationSecret:
    """Rotate the integration's HMAC secret; the new one is in the response and nowhere else, the old one is void.

    Raises: ProjectNotFound; IntegrationNotFound; IntegrationRevoked; ResourceDeletionInProgress; AudienceUnavailable.
    Source: API v1, "Audience control".
    """
    change = await _request(ctx, scope, target, "audience.integration_secret_rotation", {})
    rotating = change.audience.rotate_secret(
        _project(scope, target.project_id), target.integration_id, operation_id=change.intent.id, request_id=request_id
    )
    rotated = await _carry_out(ctx, change.intent, rotating)
    return IntegrationSecret(change.describe(rotated.integration), rotated.hmac_secret)


async def change_retention(
    ctx: RequestContext, scope: TenantScope, target: Target, *, retention_days: int, request_id: str
) -> RetentionResponse:
    """Change for how many days the integration keeps its events; older ones are deleted at once, for good.

    Audience says which mode the integration has, after the audit entry is written; the entitlement of that mode must
    hold.

    Raises: ProjectNotFound; IntegrationNotFound; IntegrationRevoked; ValidationFailed for a demo whose
        retention is too long; EntitlementRequired; ResourceDeletionInProgress; AudienceUnavailable.
    Source: API v1, "Audience control".
    """
    changes = {"retention_days": retention_days}
    change = await _request(ctx, scope, target, "audience.integration_retention_update", changes)
    try:
        await _judge_retention(ctx, change.audience, scope, target, retention_days, request_id)
    except Problem:
        await _finalise(ctx, change.intent, "failed")  # The request changes nothing.
        raise
    changing = change.audience.change_retention(
        _project(scope, target.project_id),
        target.integration_id,
        ChangeRetentionRequest(retention_days=retention_days),
        operation_id=change.intent.id,
        request_id=request_id,
    )
    return await _carry_out(ctx, change.intent, changing)


async def replace_core_key(
    ctx: RequestContext, scope: TenantScope, target: Target, *, request_id: str
) -> CoreKeyResponse:
    """Have the integration trust the key that Core signs with, and for seven more minutes the one it trusted before.

    During a rotation it trusts the new key.

    Raises: ProjectNotFound; IntegrationNotFound; IntegrationRevoked; ResourceDeletionInProgress; AudienceUnavailable.
    Source: API v1, "Audience control".
    """
    key = _core_key(await ctx.live_keyring.key_to_trust())
    key_metadata = {"core_key_id": key.key_id}
    change = await _request(ctx, scope, target, "audience.integration_core_key_update", key_metadata)
    replacing = change.audience.replace_core_key(
        _project(scope, target.project_id),
        target.integration_id,
        key,
        operation_id=change.intent.id,
        request_id=request_id,
    )
    replacing_trusted = _await_and_catch_up(ctx, change.audience, key, replacing, request_id)
    replaced, trusted = await _carry_out(ctx, change.intent, replacing_trusted)
    return replaced.model_copy(update={"core_key_id": trusted.key_id})


async def _request(
    ctx: RequestContext, scope: TenantScope, target: Target, action: IntentAction, metadata: Mapping[str, Any]
) -> RequestedChange:
    """Do phase 1 for an existing integration.

    Raises: IntegrationNotFound, also if the organisation never had an integration.
    """
    if not may_be_integration_id(target.integration_id):
        await _require_project(ctx, scope, target.project_id)
        raise IntegrationNotFound
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_open_project(tx, scope, target.project_id)
        audience = await find_audience(ctx, tx, scope.organization_id)
        if audience is None:
            raise IntegrationNotFound
        names = await integration_names.find_many(tx, scope, [target.integration_id])
        intent = await audit.request(
            tx,
            scope,
            ctx.entropy,
            action,
            now=ctx.clock.now(),
            project_id=target.project_id,
            integration_id=target.integration_id,
            **metadata,
        )
    return RequestedChange(intent, audience, names.get(target.integration_id))


async def _require_project(ctx: RequestContext, scope: TenantScope, project_id: str) -> None:
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_open_project(tx, scope, project_id)


async def _carry_out(
    ctx: RequestContext, intent: AuditIntent, call: Awaitable[T], *, get_id: Callable[[T], str] | None = None
) -> T:
    """Do phases 2 and 3: await the call, and finalise the entry.

    For a call that creates an integration, `get_id` returns its id.
    """
    try:
        result = await call
    except AudienceUnavailable:
        raise
    except Problem:
        await _finalise(ctx, intent, "failed")
        raise
    await _finalise(ctx, intent, "completed", created_id=None if get_id is None else get_id(result))
    return result


async def _finalise(
    ctx: RequestContext, intent: AuditIntent, outcome: FinalOutcome, *, created_id: str | None = None
) -> None:
    """Do phase 3. Never fails: the caller must get Audience's response."""
    try:
        async with ctx.db.transaction(tenant=intent.organization_id) as tx:
            await settle_creation(tx, intent, created_id)
            await entries.update_outcome(tx, intent, outcome=outcome, now=ctx.clock.now())
    except Exception as error:  # noqa: BLE001 - whatever it was, the answer may hold what is told only once
        _log.warning("audit_intent_left", entry_id=intent.id, outcome=outcome, error=type(error).__name__)


async def _judge_retention(
    ctx: RequestContext,
    audience: AudienceChannel,
    scope: TenantScope,
    target: Target,
    retention_days: int,
    request_id: str,
) -> None:
    integration = await audience.get_integration(
        scope.organization_id, target.project_id, target.integration_id, request_id=request_id
    )
    if integration.mode == "demo":
        _judge_demo(retention_days)
        return
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        live = await subscriptions.list_live_quotas(tx, scope.organization_id, integration.mode)
    if find_best(live, ctx.clock.now()) is None:
        raise EntitlementRequired


async def _find_entitlement(ctx: RequestContext, tx: Tx, scope: TenantScope, mode: AudienceMode) -> Entitlement | None:
    """Return the entitlement to the mode that holds now; None for a demo, which needs none.

    It is judged by the subscriptions, because the stored one may have ended within the last minute.

    Raises: EntitlementRequired.
    """
    if mode == "demo":
        return None
    await subscriptions.lock_all(tx, scope.organization_id)
    now = ctx.clock.now()
    entitlement = await refresh_entitlement(ctx, tx, scope.organization_id, mode, is_open=True, now=now)
    if entitlement is None or not entitlement.holds(now):
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


async def _await_and_catch_up(
    ctx: RequestContext, audience: AudienceChannel, given: CoreKey, call: Awaitable[T], request_id: str
) -> tuple[T, CoreKey]:
    """Do phase 2 of an operation that gives an integration a key; return also the key that the integration trusts."""
    result = await call
    # Before the entry is finalised: if it stays `requested`, the job takes care of the key.
    return result, await _catch_up(ctx, audience, given, request_id)


async def _catch_up(ctx: RequestContext, audience: AudienceChannel, given: CoreKey, request_id: str) -> CoreKey:
    """Give the integration the new key if a rotation began after the `given` key was chosen; return what it trusts.

    A rotation that begins later finds the integration. Never fails, like `_finalise`; the worker repairs it.
    """
    try:
        key = _core_key(await ctx.live_keyring.key_to_trust())
        if key.key_id == given.key_id:
            return given
        await request_push(ctx, key.key_id)
        await audience.push_everywhere(key, request_id=request_id)
    except Exception as error:  # noqa: BLE001 - as above
        _log.warning("core_key_not_caught_up", error=type(error).__name__)
        return given
    return key
