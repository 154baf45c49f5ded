"""Commands on Codes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from soundmark.core.channel.audio import Protocol
from soundmark.core.context import Context
from soundmark.core.domain.code import TOKEN_PREFIX, TOKEN_RANDOM_CHARS, Code, ListedCode, frame_of, payload_of
from soundmark.core.domain.scope import TenantScope
from soundmark.core.domain.signed_facts import agree, read_facts
from soundmark.core.integrity import report_broken
from soundmark.core.problems import (
    CampaignNotFound,
    CodeNotActive,
    CodeNotFound,
    IntegrationNotFound,
    IntentNotCanonical,
    ProjectNotFound,
)
from soundmark.core.steps import audit
from soundmark.core.steps.authority import hold_authority
from soundmark.core.store import broadcasts, codes, projects
from soundmark.kit.canonical import NotCanonical, canonicalize
from soundmark.kit.ids import may_be_id, mint
from soundmark.kit.paging import Page, Position, cut_page
from soundmark.kit.postgres import Tx
from soundmark.kit.problems import FieldError, ValidationFailed

_PAST: Final = ValidationFailed(errors=(FieldError("body", "/expires_at", "must be in the future"),))


@dataclass(frozen=True, slots=True)
class Issuance:
    """What a caller asks to be issued. `integration_id` None: no Audience."""

    project_id: str
    campaign_id: str | None
    issuer: str
    expires_at: datetime
    intent: Mapping[str, Any]
    integration_id: str | None


async def issue_code(ctx: Context, scope: TenantScope, wanted: Issuance) -> Code:
    """A signed Code exists and its token can be resolved, both from the same commit on.

    Raises: IntentNotCanonical; ProjectNotFound; CampaignNotFound; IntegrationNotFound; ValidationFailed for an expiry
        that is not in the future when the Code would be written.
    Source: API v1, "Codes" and "Issuance ordering".
    """
    try:
        canonicalize(wanted.intent)
    except NotCanonical as error:
        raise IntentNotCanonical(f"The intent {error}.") from None
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        await _hold_references(tx, scope, wanted)
        now = ctx.clock.now()  # Read after the lock wait: expiry is judged when we act.
        if wanted.expires_at <= now:
            raise _PAST
        code = _sign(ctx, scope, wanted, now)
        await broadcasts.insert(tx, token=code.broadcast_token, payload=code.payload, signature=code.signature)
        await codes.insert(tx, scope, code)
        await audit.record(
            tx,
            scope,
            ctx.entropy,
            action="code.issued",
            now=now,
            project_id=code.project_id,
            metadata={"xr_id": code.xr_id},
        )
    return code


async def get_code(ctx: Context, scope: TenantScope, xr_id: str, *, project_id: str | None = None) -> Code:
    """One Code, whatever its state, after its signature and every stored fact were checked.

    Raises: CodeNotFound, also for a Code of another tenant or project, and for one that does not verify.
    """
    if not may_be_id(xr_id) or not (project_id is None or may_be_id(project_id)):
        raise CodeNotFound
    if project_id is not None and not scope.reaches(project_id):
        raise ProjectNotFound
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        code = await codes.find(tx, scope, xr_id, project_id=project_id)
    return await _verified(ctx, code)


async def list_codes(
    ctx: Context, scope: TenantScope, *, before: Position | None, limit: int
) -> tuple[Page[ListedCode], datetime]:
    """The Codes of the organisation, newest first, and the moment at which their states are to be judged."""
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        rows = await codes.list_newest_first(tx, scope, before=before, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(row.issued_at, row.xr_id)), ctx.clock.now()


async def revoke_code(ctx: Context, scope: TenantScope, xr_id: str) -> Code:
    """The Code is revoked, and no resolution that starts after this returns its intent.

    A Code that is revoked or expired already is answered unchanged.

    Raises: CodeNotFound.
    Source: API v1, "States and transitions", XR Code; contract, section 4.
    """
    if not may_be_id(xr_id):
        raise CodeNotFound
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        code = await codes.lock(tx, scope, xr_id)
        if code is None:
            raise CodeNotFound
        now = ctx.clock.now()  # Read after the lock wait: expiry is judged when we act.
        if code.status(now) == "active":
            await codes.revoke(tx, scope, xr_id, now=now)
            await broadcasts.revoke(tx, token=code.broadcast_token, now=now)
            await audit.record(
                tx,
                scope,
                ctx.entropy,
                action="code.revoked",
                now=now,
                project_id=code.project_id,
                metadata={"xr_id": xr_id},
            )
            code = replace(code, revoked_at=now)
    return await _verified(ctx, code)


async def render_code(
    ctx: Context, scope: TenantScope, xr_id: str, *, protocol: Protocol, request_id: str
) -> tuple[str, bytes]:
    """The Code's id and the WAV of its stored frame.

    Raises: CodeNotFound; CodeNotActive; AudioUnavailable.
    Source: API v1, "Codes"; contract, section 5.
    """
    code = await get_code(ctx, scope, xr_id)
    if code.status(ctx.clock.now()) != "active":
        raise CodeNotActive
    return code.xr_id, await ctx.audio.render(frame_of(code.broadcast_token), protocol, request_id=request_id)


async def _hold_references(tx: Tx, scope: TenantScope, wanted: Issuance) -> None:
    if (
        not scope.reaches(wanted.project_id)
        or not may_be_id(wanted.project_id)
        or not await projects.hold(tx, scope, wanted.project_id)
    ):
        raise ProjectNotFound
    # Neither campaigns nor integrations exist yet, so none that is named can be found.
    if wanted.campaign_id is not None:
        raise CampaignNotFound
    if wanted.integration_id is not None:
        raise IntegrationNotFound


def _sign(ctx: Context, scope: TenantScope, wanted: Issuance, now: datetime) -> Code:
    key = ctx.custody.keyring.active
    xr_id = mint(ctx.entropy, "xr_")
    token = mint(ctx.entropy, TOKEN_PREFIX, TOKEN_RANDOM_CHARS)
    payload = payload_of(
        xr_id=xr_id,
        organization_id=scope.organization_id,
        project_id=wanted.project_id,
        campaign_id=wanted.campaign_id,
        issuer=wanted.issuer,
        issued_at=now,
        expires_at=wanted.expires_at,
        intent=wanted.intent,
        audience_integration_id=wanted.integration_id,
        broadcast_token=token,
        key_id=key.key_id,
    )
    return Code(
        xr_id=xr_id,
        organization_id=scope.organization_id,
        project_id=wanted.project_id,
        campaign_id=wanted.campaign_id,
        issuer=wanted.issuer,
        issued_at=now,
        expires_at=wanted.expires_at,
        broadcast_token=token,
        audience_integration_id=wanted.integration_id,
        key_id=key.key_id,
        revoked_at=None,
        payload=payload,
        signature=key.sign(payload),
    )


async def _verified(ctx: Context, code: Code | None) -> Code:
    if code is None:
        raise CodeNotFound
    facts = read_facts(code.payload)
    if facts is not None and agree(facts, code):
        keyring = await ctx.custody.keyring_with(facts.key_id)
        if keyring.verifies(facts.key_id, code.payload, code.signature):
            return code
    report_broken("tenant", xr_id=code.xr_id)
    raise CodeNotFound
