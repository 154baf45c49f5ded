"""Commands that render Codes."""

from soundmark.core.context import RequestContext
from soundmark.core.domain.codes.code import Code, ListedCode, frame_of
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import CodeNotActive, CodeNotFound
from soundmark.core.steps.signed_codes import read_signed_codes, verify_code
from soundmark.core.steps.tenancy import hold_authority
from soundmark.core.store.codes import codes
from soundmark.wire.private.audio import Protocol


async def render_code(
    ctx: RequestContext, scope: TenantScope, xr_id: str, *, protocol: Protocol, request_id: str
) -> tuple[str, bytes]:
    """Return the Code's id and the WAV of its stored frame.

    The caller and the Code are judged before rendering and again afterwards, so that a Code which was revoked in the
    meantime is not returned.

    Raises: CodeNotFound; CodeNotActive; AudioUnavailable; what `hold_authority` raises.
    Source: API v1, "Codes"; contract, section 5.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        listed = await codes.find(tx, scope, xr_id)
        found = await read_signed_codes(tx, [] if listed is None else [listed])
    code = await verify_code(ctx, found[0] if found else None)
    _require_active(ctx, code)
    wav = await ctx.audio.render(frame_of(code.broadcast_token), protocol, request_id=request_id)
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        again = await codes.find_many(tx, scope, code.project_id, [code.xr_id])
    if not again:
        raise CodeNotFound
    _require_active(ctx, again[0])
    return code.xr_id, wav


def _require_active(ctx: RequestContext, code: Code | ListedCode) -> None:
    if code.status(ctx.clock.now()) != "active":  # Read after the Code, which may have expired meanwhile.
        raise CodeNotActive
