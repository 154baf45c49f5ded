"""Commands on integrations. Each mutation is an operation of Core's: done once, and answered the same ever after."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from soundmark.audience.context import Context
from soundmark.audience.domain.entitlement import Entitlement
from soundmark.audience.domain.integration import (
    PREVIOUS_KEY_KEPT,
    SECRET_PREFIX,
    Integration,
    Mode,
    TrustedKey,
    Workspace,
    is_retention_of,
)
from soundmark.audience.domain.operation import Asked
from soundmark.audience.domain.retention import first_kept_day
from soundmark.audience.features.integrations.wire import (
    CoreKeyReplaced,
    IntegrationView,
    RetentionChanged,
    WithSecret,
    integration_view,
)
from soundmark.audience.problems import EntitlementRequired, IntegrationNotFound, IntegrationRevoked
from soundmark.audience.secrets import seal_hmac_secret
from soundmark.audience.steps import once
from soundmark.audience.store import entitlements, integrations, retention
from soundmark.kit.ids import may_be_id, mint, mint_secret
from soundmark.kit.paging import Position
from soundmark.kit.postgres import Tx
from soundmark.kit.problems import FieldError, ValidationFailed
from soundmark.kit.secret import Secret
from soundmark.wire.audience_limits import DEMO_RETENTION_DAYS_MAX

# Above the longest deletion of one day that can be thought of: ten million events take some twenty seconds.
_CUT_STATEMENT_TIMEOUT_S: Final = 120


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new integration is to be. `entitlement` is Core's, None for a demo."""

    mode: Mode
    retention_days: int
    core_key: TrustedKey
    entitlement: Entitlement | None


async def create_integration(ctx: Context, asked: Asked, wanted: Wanted) -> WithSecret:
    """A new integration exists, which trusts the key that it was made with; its secret is answered this once.

    Core's entitlement is kept with it, unless a later one is known here already.

    Raises: ValidationFailed for a demo that keeps too long; EntitlementRequired where another mode has none that holds;
        OperationConflict.
    Source: API v1, "Audience control"; contract, section 6.
    """
    _require_retention(wanted.mode, wanted.retention_days)
    secret = Secret(mint_secret(ctx.entropy, SECRET_PREFIX))
    async with ctx.db.transaction() as tx:
        done = await once.recall(tx, asked, WithSecret)
        if done is not None:
            return done
        if wanted.entitlement is not None:
            await entitlements.insert_or_update_newer(tx, wanted.entitlement)
        now = ctx.clock.now()
        await _require_entitlement(tx, asked.workspace.organization_id, wanted.mode, now=now)
        integration = Integration(
            id=mint(ctx.entropy, "int_"),
            organization_id=asked.workspace.organization_id,
            project_id=asked.workspace.project_id,
            mode=wanted.mode,
            retention_days=wanted.retention_days,
            core_key_id=wanted.core_key.key_id,
            created_at=now,
            secret_rotated_at=None,
            revoked_at=None,
        )
        sealed_secret = seal_hmac_secret(ctx.sealer, integration.id, secret)
        await integrations.insert(tx, integration, sealed_secret=sealed_secret, core_key=wanted.core_key)
        answer = WithSecret(integration=integration_view(integration), hmac_secret=None)
        await once.note(tx, asked, integration.id, answer, now=now)
    return WithSecret(integration=answer.integration, hmac_secret=secret.reveal())


async def read_integration(ctx: Context, workspace: Workspace, integration_id: str) -> Integration:
    """One integration of the project.

    Raises: IntegrationNotFound.
    """
    if not may_be_id(integration_id):
        raise IntegrationNotFound
    async with ctx.db.transaction() as tx:
        integration = await integrations.find(tx, workspace, integration_id)
    if integration is None:
        raise IntegrationNotFound
    return integration


async def list_integrations(
    ctx: Context, workspace: Workspace, *, before: Position | None, limit: int
) -> list[Integration]:
    """Up to `limit` integrations of the project, revoked ones too, newest first."""
    async with ctx.db.transaction() as tx:
        return await integrations.list_newest_first(tx, workspace, before=before, limit=limit)


async def revoke_integration(ctx: Context, asked: Asked) -> IntegrationView:
    """The integration records nothing any more from this moment on; what it recorded stays reportable.

    One that is revoked already is answered unchanged.

    Raises: IntegrationNotFound; OperationConflict.
    Source: API v1, "States and transitions", Audience integration.
    """
    async with ctx.db.transaction() as tx:
        done = await once.recall(tx, asked, IntegrationView)
        if done is not None:
            return done
        integration = await _lock(tx, asked)
        now = ctx.clock.now()
        if integration.revoked_at is None:
            await integrations.update_revoked(tx, asked.workspace, integration.id, now=now)
            integration = replace(integration, revoked_at=now)
        answer = integration_view(integration)
        await once.note(tx, asked, integration.id, answer, now=now)
    return answer


async def rotate_secret(ctx: Context, asked: Asked) -> WithSecret:
    """The integration has another HMAC secret, answered this once; the one before is good for nothing any more.

    Raises: IntegrationNotFound; IntegrationRevoked; OperationConflict.
    Source: API v1, "Audience control".
    """
    secret = Secret(mint_secret(ctx.entropy, SECRET_PREFIX))
    async with ctx.db.transaction() as tx:
        done = await once.recall(tx, asked, WithSecret)
        if done is not None:
            return done
        integration = await _lock_active(tx, asked)
        now = ctx.clock.now()
        sealed_secret = seal_hmac_secret(ctx.sealer, integration.id, secret)
        await integrations.update_secret(tx, asked.workspace, integration.id, sealed_secret=sealed_secret, now=now)
        integration = replace(integration, secret_rotated_at=now)
        answer = WithSecret(integration=integration_view(integration), hmac_secret=None)
        await once.note(tx, asked, integration.id, answer, now=now)
    return WithSecret(integration=answer.integration, hmac_secret=secret.reveal())


async def change_retention(ctx: Context, asked: Asked, *, retention_days: int) -> RetentionChanged:
    """The integration keeps its data for so long; what lies outside is deleted and counted exactly, all or nothing.

    Keeping longer brings nothing back. What was remembered to tell replays by follows with the daily retention.

    Raises: IntegrationNotFound; IntegrationRevoked; ValidationFailed for a demo that would keep too long;
        OperationConflict.
    Source: API v1, "Audience control".
    """
    async with ctx.db.transaction(statement_timeout_s=_CUT_STATEMENT_TIMEOUT_S) as tx:
        done = await once.recall(tx, asked, RetentionChanged)
        if done is not None:
            return done
        await retention.hold(tx)
        integration = await _lock_active(tx, asked)
        _require_retention(integration.mode, retention_days)
        await integrations.update_retention(tx, asked.workspace, integration.id, retention_days=retention_days)
        now = ctx.clock.now()
        number = await integrations.get_number(tx, asked.workspace, integration.id)
        kept_from = first_kept_day(now, retention_days)
        deleted_events = 0
        # A day at a time: no statement is long, however much a year holds.
        day = await retention.find_day(tx, number, after=None, before=kept_from)
        while day is not None:
            deleted_events += await retention.delete_events_of(tx, number, day=day)
            day = await retention.find_day(tx, number, after=day, before=kept_from)
        answer = RetentionChanged(
            integration_id=integration.id,
            previous_retention_days=integration.retention_days,
            retention_days=retention_days,
            deleted_events=deleted_events,
            deleted_integrity_days=await retention.delete_integrity_days(tx, number, before=kept_from),
        )
        await once.note(tx, asked, integration.id, answer, now=now)
    return answer


async def replace_core_key(ctx: Context, asked: Asked, *, core_key: TrustedKey) -> CoreKeyReplaced:
    """The integration trusts `core_key`, and for seven more minutes the one before it; no other changes.

    One that trusts it already stays as it is.

    Raises: IntegrationNotFound; IntegrationRevoked; OperationConflict.
    Source: API v1, "Audience control"; "Audience measurement event", 8.
    """
    async with ctx.db.transaction() as tx:
        done = await once.recall(tx, asked, CoreKeyReplaced)
        if done is not None:
            return done
        integration = await _lock_active(tx, asked)
        now = ctx.clock.now()
        await integrations.update_core_key(tx, [integration.id], core_key, previous_until=now + PREVIOUS_KEY_KEPT)
        answer = CoreKeyReplaced(integration_id=integration.id, core_key_id=core_key.key_id)
        await once.note(tx, asked, integration.id, answer, now=now)
    return answer


async def _lock(tx: Tx, asked: Asked) -> Integration:
    identity = asked.integration_id
    if identity is None or not may_be_id(identity):
        raise IntegrationNotFound
    integration = await integrations.lock(tx, asked.workspace, identity)
    if integration is None:
        raise IntegrationNotFound
    return integration


async def _lock_active(tx: Tx, asked: Asked) -> Integration:
    integration = await _lock(tx, asked)
    if integration.revoked_at is not None:
        raise IntegrationRevoked
    return integration


def _require_retention(mode: Mode, retention_days: int) -> None:
    if not is_retention_of(mode, retention_days):
        message = f"must be at most {DEMO_RETENTION_DAYS_MAX} for a demo"
        raise ValidationFailed(errors=(FieldError("body", "/retention_days", message),))


async def _require_entitlement(tx: Tx, organization_id: str, mode: Mode, *, now: datetime) -> None:
    if mode == "demo":
        return
    entitlement = await entitlements.find(tx, organization_id, mode)
    if entitlement is None or not entitlement.holds(now):
        raise EntitlementRequired
