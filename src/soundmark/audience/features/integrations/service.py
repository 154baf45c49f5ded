"""Commands on integrations. Each mutation is an operation of Core's: a repeat gets the same response."""

from dataclasses import replace
from datetime import date, datetime
from typing import Final

from soundmark.audience.context import Context
from soundmark.audience.domain.entitlement import Entitlement
from soundmark.audience.domain.integration import (
    PREVIOUS_KEY_KEPT,
    SECRET_PREFIX,
    Integration,
    TrustedKey,
    Workspace,
    is_retention_of,
)
from soundmark.audience.domain.operation import RequestedOperation
from soundmark.audience.domain.retention import first_kept_day
from soundmark.audience.secrets import seal_hmac_secret
from soundmark.audience.steps import idempotency
from soundmark.audience.steps.tenancy import hold_unpurged
from soundmark.audience.store import entitlements, integrations, retention
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.deadline import outlive_deadline
from soundmark.kit.http.responses.problems import FieldError, ValidationFailed
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import may_be_id, mint_secret
from soundmark.kit.text.paging import Position
from soundmark.wire.audience_limits import DEMO_RETENTION_DAYS_MAX
from soundmark.wire.private.integrations import (
    CoreKeyResponse,
    CreateIntegrationRequest,
    IntegrationResponse,
    IntegrationSecretResponse,
    IntegrationsQuery,
    IntegrationsResponse,
    InventoryQuery,
    RetentionResponse,
)
from soundmark.wire.private.parts import CoreKey
from soundmark.wire.private.problems import EntitlementRequired, IntegrationNotFound, IntegrationRevoked
from soundmark.wire.shape import AudienceMode

# Longer than any deletion of one day: ten million events take some twenty seconds.
_CUT_STATEMENT_TIMEOUT_S: Final = 120


async def create_integration(
    ctx: Context, operation: RequestedOperation, request: CreateIntegrationRequest
) -> IntegrationSecretResponse:
    """Create an integration that trusts the key of the request, and reveal its secret, only this once.

    Core's entitlement is kept too, unless a later one is already known here.

    Raises: ValidationFailed for a demo that keeps its data too long; EntitlementRequired if no entitlement of the mode
        holds; TenantPurged; OperationConflict.
    Source: API v1, "Audience control"; contract, section 6.
    """
    _require_retention(request.mode, request.retention_days)
    secret = Secret(mint_secret(ctx.entropy, SECRET_PREFIX))
    async with ctx.db.transaction() as tx:
        done = await idempotency.find_response(tx, operation, IntegrationSecretResponse)
        if done is not None:
            return done
        await hold_unpurged(tx, request.organization_id, request.project_id)
        if request.entitlement is not None and request.mode != "demo":
            received = Entitlement.from_terms(request.organization_id, request.mode, request.entitlement)
            await entitlements.insert_or_update_newer(tx, received)
        now = ctx.clock.now()
        await _require_entitlement(tx, request.organization_id, request.mode, now=now)
        integration = Integration(
            id=request.integration_id,
            organization_id=request.organization_id,
            project_id=request.project_id,
            mode=request.mode,
            retention_days=request.retention_days,
            core_key_id=request.core_key.key_id,
            created_at=now,
            secret_rotated_at=None,
            revoked_at=None,
        )
        sealed_secret = seal_hmac_secret(ctx.sealer, integration.id, secret)
        core_key = TrustedKey.from_shape(request.core_key)
        await integrations.insert(tx, integration, sealed_secret=sealed_secret, core_key=core_key)
        response = IntegrationSecretResponse(integration=IntegrationResponse.from_record(integration), hmac_secret=None)
        await idempotency.save_response(tx, operation, integration.id, response, now=now)
    return IntegrationSecretResponse(integration=response.integration, hmac_secret=secret.reveal())


async def read_integration(ctx: Context, workspace: Workspace, integration_id: str) -> IntegrationResponse:
    """Read one integration of the project.

    Raises: IntegrationNotFound.
    """
    if not may_be_id(integration_id):
        raise IntegrationNotFound
    async with ctx.db.transaction() as tx:
        integration = await integrations.find(tx, workspace, integration_id)
    if integration is None:
        raise IntegrationNotFound
    return IntegrationResponse.from_record(integration)


async def list_integrations(ctx: Context, query: IntegrationsQuery) -> IntegrationsResponse:
    """List a page of a project's integrations, newest first, including revoked ones."""
    workspace = Workspace(query.organization_id, query.project_id)
    before = None
    if query.before_at is not None and query.before_id is not None:
        before = Position(query.before_at, query.before_id)
    async with ctx.db.transaction() as tx:
        found = await integrations.list_newest_first(tx, workspace, before=before, limit=query.limit)
    return IntegrationsResponse(data=[IntegrationResponse.from_record(integration) for integration in found])


async def list_inventory(ctx: Context, organization_id: str, query: InventoryQuery) -> IntegrationsResponse:
    """List the next integrations of an organisation, or of one of its projects, oldest first, with revoked ones."""
    after = Position(query.after_at, query.after_id)
    async with ctx.db.transaction() as tx:
        found = await integrations.list_oldest_first(
            tx, organization_id, project_id=query.project_id, after=after, limit=query.limit
        )
    return IntegrationsResponse(data=[IntegrationResponse.from_record(integration) for integration in found])


async def revoke_integration(ctx: Context, operation: RequestedOperation) -> IntegrationResponse:
    """Revoke an integration: it records no more events, but its reports stay available.

    An integration that is already revoked is answered unchanged.

    Raises: IntegrationNotFound; OperationConflict.
    Source: API v1, "States and transitions", Audience integration.
    """
    async with ctx.db.transaction() as tx:
        done = await idempotency.find_response(tx, operation, IntegrationResponse)
        if done is not None:
            return done
        integration = await _lock(tx, operation)
        now = ctx.clock.now()
        if integration.revoked_at is None:
            await integrations.update_revoked(tx, operation.workspace, integration.id, now=now)
            integration = replace(integration, revoked_at=now)
        response = IntegrationResponse.from_record(integration)
        await idempotency.save_response(tx, operation, integration.id, response, now=now)
    return response


async def rotate_secret(ctx: Context, operation: RequestedOperation) -> IntegrationSecretResponse:
    """Rotate the HMAC secret of an integration, and reveal the new one, only this once; reject the old one at once.

    Raises: IntegrationNotFound; IntegrationRevoked; OperationConflict.
    Source: API v1, "Audience control".
    """
    secret = Secret(mint_secret(ctx.entropy, SECRET_PREFIX))
    async with ctx.db.transaction() as tx:
        done = await idempotency.find_response(tx, operation, IntegrationSecretResponse)
        if done is not None:
            return done
        integration = await _lock_active(tx, operation)
        now = ctx.clock.now()
        sealed_secret = seal_hmac_secret(ctx.sealer, integration.id, secret)
        await integrations.update_secret(tx, operation.workspace, integration.id, sealed_secret=sealed_secret, now=now)
        integration = replace(integration, secret_rotated_at=now)
        response = IntegrationSecretResponse(integration=IntegrationResponse.from_record(integration), hmac_secret=None)
        await idempotency.save_response(tx, operation, integration.id, response, now=now)
    return IntegrationSecretResponse(integration=response.integration, hmac_secret=secret.reveal())


async def change_retention(ctx: Context, operation: RequestedOperation, *, retention_days: int) -> RetentionResponse:
    """Change how long an integration keeps its data; delete all older events, or none, and count them.

    A longer retention restores nothing. The daily retention deletes the records that detect replays. The deletion of
    years of events continues after Core's deadline, since it would otherwise never end; Core gets the result later.

    Raises: IntegrationNotFound; IntegrationRevoked; ValidationFailed for a demo that would keep its data too long;
        OperationConflict.
    Source: API v1, "Audience control".
    """
    outlive_deadline()
    async with ctx.db.transaction(statement_timeout_s=_CUT_STATEMENT_TIMEOUT_S) as tx:
        done = await idempotency.find_response(tx, operation, RetentionResponse)
        if done is not None:
            return done
        await retention.hold(tx)
        integration = await _lock_active(tx, operation)
        _require_retention(integration.mode, retention_days)
        await integrations.update_retention(tx, operation.workspace, integration.id, retention_days=retention_days)
        now = ctx.clock.now()
        number = await integrations.get_number(tx, operation.workspace, integration.id)
        kept_from = first_kept_day(now, retention_days)
        response = RetentionResponse(
            integration_id=integration.id,
            previous_retention_days=integration.retention_days,
            retention_days=retention_days,
            deleted_events=await _delete_events(tx, number, before=kept_from),
            deleted_integrity_days=await retention.delete_integrity_days(tx, number, before=kept_from),
        )
        await idempotency.save_response(tx, operation, integration.id, response, now=now)
    return response


async def replace_core_key(ctx: Context, operation: RequestedOperation, *, core_key: CoreKey) -> CoreKeyResponse:
    """Make one integration trust `core_key`, and its previous key for seven more minutes.

    An integration that already trusts the key stays as it is.

    Raises: IntegrationNotFound; IntegrationRevoked; OperationConflict.
    Source: API v1, "Audience control"; "Audience measurement event", 8.
    """
    async with ctx.db.transaction() as tx:
        done = await idempotency.find_response(tx, operation, CoreKeyResponse)
        if done is not None:
            return done
        integration = await _lock_active(tx, operation)
        now = ctx.clock.now()
        trusted = TrustedKey.from_shape(core_key)
        await integrations.update_core_key(tx, [integration.id], trusted, previous_until=now + PREVIOUS_KEY_KEPT)
        response = CoreKeyResponse(integration_id=integration.id, core_key_id=core_key.key_id)
        await idempotency.save_response(tx, operation, integration.id, response, now=now)
    return response


async def _lock(tx: Tx, operation: RequestedOperation) -> Integration:
    identity = operation.integration_id
    if identity is None or not may_be_id(identity):
        raise IntegrationNotFound
    integration = await integrations.lock(tx, operation.workspace, identity)
    if integration is None:
        raise IntegrationNotFound
    return integration


async def _lock_active(tx: Tx, operation: RequestedOperation) -> Integration:
    integration = await _lock(tx, operation)
    if integration.revoked_at is not None:
        raise IntegrationRevoked
    return integration


def _require_retention(mode: AudienceMode, retention_days: int) -> None:
    if not is_retention_of(mode, retention_days):
        message = f"must be at most {DEMO_RETENTION_DAYS_MAX} for a demo"
        raise ValidationFailed(errors=(FieldError("body", "/retention_days", message),))


async def _require_entitlement(tx: Tx, organization_id: str, mode: AudienceMode, *, now: datetime) -> None:
    if mode == "demo":
        return
    entitlement = await entitlements.find(tx, organization_id, mode)
    if entitlement is None or not entitlement.holds(now):
        raise EntitlementRequired


async def _delete_events(tx: Tx, number: int, *, before: date) -> int:
    """Delete and count the events of every day that precedes `before`.

    It deletes a day at a time, so that no statement takes long, however many events a year has.
    """
    deleted_count = 0
    day = await retention.find_day(tx, number, after=None, before=before)
    while day is not None:
        deleted_count += await retention.delete_events_of(tx, number, day=day)
        day = await retention.find_day(tx, number, after=day, before=before)
    return deleted_count
