"""The routes of Codes."""

from typing import Annotated

from fastapi import Depends, Query

from soundmark.core.domain.codes.code import CodeStatus
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, ResourceId, Tenant, XrIdPath
from soundmark.core.edge.refusals import invalid
from soundmark.core.features.codes.codes import service
from soundmark.core.features.codes.codes.wire import CodePage, RevokeCodes, RevokedCodes
from soundmark.core.problems import CampaignNotFound, CodeNotFound, ProjectNotFound
from soundmark.core.store.codes.code_lists import CodeFilter
from soundmark.core.views.codes import detail_view, summary_view
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.shape import NO_CONTROL_CHARS, Timestamp
from soundmark.wire.xr_code import CodeDetail

operations = Operations("Codes")


async def _wanted(  # noqa: PLR0913 - one for each filter
    *,
    status: Annotated[
        CodeStatus | None,
        Query(
            description="Only Codes that are in this state when their page is read: one that expires or is revoked "
            "between two pages is where it was issued, in the state that it is in then."
        ),
    ] = None,
    project_id: Annotated[ResourceId | None, Query(description="Only Codes of this project.")] = None,
    campaign_id: Annotated[ResourceId | None, Query(description="Only Codes of this campaign.")] = None,
    issuer: Annotated[
        str | None,
        Query(min_length=1, max_length=160, pattern=NO_CONTROL_CHARS, description="Only Codes of exactly this issuer."),
    ] = None,
    created_from: Annotated[
        Timestamp | None, Query(description="Only Codes issued at this moment or later, RFC 3339; before `created_to`.")
    ] = None,
    created_to: Annotated[Timestamp | None, Query(description="Only Codes issued before this, RFC 3339.")] = None,
) -> CodeFilter:
    """Dependency: the filters."""
    if created_from is not None and created_to is not None and created_from >= created_to:
        raise invalid("query", "created_from", "must precede created_to")
    return CodeFilter(
        status=status,
        campaign_id=campaign_id,
        project_id=project_id,
        issuer=issuer,
        from_at=created_from,
        to_at=created_to,
    )


@operations.add(
    "GET",
    "/v1/codes",
    Operation("code.list", tenant="query_or_header", problems=(InvalidCursor, ProjectNotFound, CampaignNotFound)),
)
async def list_codes(
    ctx: Ctx,
    scope: Tenant,
    code_filter: Annotated[CodeFilter, Depends(_wanted)],
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> CodePage:
    """List the Codes of an organisation, newest first."""
    bound_to = _bound_to(scope, code_filter)
    before = ctx.cursors.read(cursor, route="codes", bound_to=bound_to)
    page, now = await service.list_codes(ctx, scope, code_filter, before=before, limit=limit)
    return CodePage(
        data=[summary_view(code, now) for code in page.entries],
        next_cursor=ctx.cursors.write(page.next_position, route="codes", bound_to=bound_to),
    )


@operations.add("GET", "/v1/codes/{xr_id}", Operation("code.read", problems=(CodeNotFound, ProjectNotFound)))
async def get_code(
    ctx: Ctx,
    scope: Tenant,
    xr_id: XrIdPath,
    project_id: Annotated[ResourceId | None, Query(description="Answer only a Code of this project.")] = None,
) -> CodeDetail:
    """Read one Code, in whatever state, with everything that was signed."""
    code = await service.get_code(ctx, scope, xr_id, project_id=project_id)
    return detail_view(code, ctx.clock.now())


@operations.add(
    "POST", "/v1/codes/{xr_id}/revoke", Operation("code.revoke", tenant="query_or_header", problems=(CodeNotFound,))
)
async def revoke_code(ctx: Ctx, scope: Tenant, xr_id: XrIdPath) -> CodeDetail:
    """Revoke one Code: no resolution that starts after the answer returns its intent."""
    code = await service.revoke_code(ctx, scope, xr_id)
    return detail_view(code, ctx.clock.now())


@operations.add(
    "POST", "/v1/codes/revoke-batch", Operation("code.revoke_batch", problems=(ProjectNotFound, CodeNotFound))
)
async def revoke_codes(ctx: Ctx, scope: Tenant, body: RevokeCodes) -> RevokedCodes:
    """Revoke a selection of Codes of one project, or none of them. What is revoked or expired stays as it is."""
    revoked = await service.revoke_codes(ctx, scope, body.project_id, body.xr_ids)
    return RevokedCodes(
        requested_count=revoked.requested_count,
        revoked_count=revoked.revoked_count,
        unchanged_count=revoked.requested_count - revoked.revoked_count,
    )


def _bound_to(scope: TenantScope, code_filter: CodeFilter) -> dict[str, str | None]:
    """What a cursor is good for. No moment is in it: each page is judged when it is read."""
    return {
        "organization_id": scope.organization_id,
        "confined_to": scope.project_id,
        "status": code_filter.status,
        "campaign_id": code_filter.campaign_id,
        "project_id": code_filter.project_id,
        "issuer": code_filter.issuer,
        "created_from": None if code_filter.from_at is None else format_timestamp(code_filter.from_at),
        "created_to": None if code_filter.to_at is None else format_timestamp(code_filter.to_at),
    }
