"""The routes of Codes."""

from typing import Annotated, Final, Literal

from fastapi import Depends, Query

from soundmark.core.domain.codes.address import ADDRESS_CHARS_MAX
from soundmark.core.domain.codes.code import CodeStatus, ListedCode
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.edge.examples import CODE, ISSUED_AT, LATER
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, Tenant, XrIdPath
from soundmark.core.edge.refusals import invalid
from soundmark.core.features.codes.codes import service
from soundmark.core.features.codes.codes.wire import CodePage, RevokeCodes, RevokedCodes
from soundmark.core.problems import CampaignNotFound, CodeNotFound, ProjectNotFound
from soundmark.core.store.codes.code_lists import NEWEST_FIRST, CodeFilter, CodeOrder
from soundmark.core.views.codes import detail_view, summary_views, with_intent_view
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.shape import NO_CONTROL_CHARS, Timestamp
from soundmark.wire.xr_code import CodeDetail, CodeSummary, CodeWithIntent

operations = Operations("Codes")

_LISTED: Final = ListedCode(**{name: getattr(CODE, name) for name in ListedCode.__dataclass_fields__})


async def _read_filter(
    *,
    status: Annotated[
        CodeStatus | None,
        Query(
            description="Only Codes with this status. The status is evaluated when a page is read, so a Code that "
            "expires or is revoked between two pages moves to another list."
        ),
    ] = None,
    project_id: Annotated[ResourceId | None, Query(description="Only Codes of this project.")] = None,
    campaign_id: Annotated[ResourceId | None, Query(description="Only Codes of this campaign.")] = None,
    issuer: Annotated[
        str | None,
        Query(
            min_length=1, max_length=160, pattern=NO_CONTROL_CHARS, description="Only Codes with exactly this issuer."
        ),
    ] = None,
    created_from: Annotated[
        Timestamp | None,
        Query(description="Only Codes issued at or after this time (RFC 3339). Must be before `created_to`."),
    ] = None,
    created_to: Annotated[Timestamp | None, Query(description="Only Codes issued before this time (RFC 3339).")] = None,
    address_prefix: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=ADDRESS_CHARS_MAX,
            description="Only Codes whose intent's `resource.url` is a string that begins with this one. Characters "
            "are compared without decoding. ASCII letters in the scheme and host, which end at the first `/`, `?` "
            "or `#` after `://`, are compared case-insensitively.",
            examples=["https://example.org/programmes/"],
        ),
    ] = None,
) -> CodeFilter:
    """Return the filters of a request (a dependency)."""
    if created_from is not None and created_to is not None and created_from >= created_to:
        raise invalid("query", "created_from", "must precede created_to")
    return CodeFilter(
        status=status,
        campaign_id=campaign_id,
        project_id=project_id,
        issuer=issuer,
        from_at=created_from,
        to_at=created_to,
        address_prefix=address_prefix,
    )


async def _read_order(
    *,
    sort: Annotated[
        Literal["issued_at", "expires_at"], Query(description="The time to sort by. Default: `issued_at`.")
    ] = "issued_at",
    order: Annotated[
        Literal["desc", "asc"], Query(description="Latest first (`desc`) or earliest first (`asc`). Default: `desc`.")
    ] = "desc",
) -> CodeOrder:
    """Return the order of a request (a dependency)."""
    return CodeOrder(sort, order)


@operations.add(
    "GET",
    "/v1/codes",
    Operation("code.list", tenant="query_or_header", problems=(InvalidCursor, ProjectNotFound, CampaignNotFound)),
    example=CodePage(data=summary_views([_LISTED], ISSUED_AT), next_cursor=None),
)
async def list_codes(
    ctx: Ctx,
    scope: Tenant,
    filters: Annotated[CodeFilter, Depends(_read_filter)],
    order: Annotated[CodeOrder, Depends(_read_order)],
    include: Annotated[
        Literal["intent"] | None,
        Query(description="Add the intent to each Code. This is not a filter, and can differ between pages."),
    ] = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> CodePage:
    """List the Codes of an organisation, newest first unless the request specifies another order.

    A page can be shorter than `limit`, or empty: the list ends only when `next_cursor` is null.
    """
    cursors = ctx.cursors.bind("codes", **_bound_to(scope, filters, order))
    data: list[CodeWithIntent | CodeSummary]
    if include is None:
        page, now = await service.list_codes(ctx, scope, filters, order, after=cursors.read(cursor), limit=limit)
        data, next_position = [*summary_views(page.entries, now)], page.next_position
    else:
        signed, now = await service.list_signed_codes(
            ctx, scope, filters, order, after=cursors.read(cursor), limit=limit
        )
        data, next_position = [with_intent_view(code, now) for code in signed.entries], signed.next_position
    return CodePage(data=data, next_cursor=cursors.write(next_position))


@operations.add(
    "GET",
    "/v1/codes/{xr_id}",
    Operation("code.read", problems=(CodeNotFound, ProjectNotFound)),
    example=detail_view(CODE, ISSUED_AT),
)
async def get_code(
    ctx: Ctx,
    scope: Tenant,
    xr_id: XrIdPath,
    project_id: Annotated[ResourceId | None, Query(description="Only a Code of this project (else 404).")] = None,
) -> CodeDetail:
    """Return one Code with its signed record, regardless of its status."""
    code = await service.get_code(ctx, scope, xr_id, project_id=project_id)
    return detail_view(code, ctx.clock.now())


@operations.add(
    "POST",
    "/v1/codes/{xr_id}/revoke",
    Operation("code.revoke", tenant="query_or_header", problems=(CodeNotFound,)),
    example=detail_view(CODE, ISSUED_AT).model_copy(update={"status": "revoked", "revoked_at": LATER}),
)
async def revoke_code(ctx: Ctx, scope: Tenant, xr_id: XrIdPath) -> CodeDetail:
    """Revoke one Code. No resolution that starts after the response returns its intent.

    A Code that is already revoked or expired is returned unchanged.
    """
    code = await service.revoke_code(ctx, scope, xr_id)
    return detail_view(code, ctx.clock.now())


@operations.add(
    "POST",
    "/v1/codes/revoke-batch",
    Operation("code.revoke_batch", problems=(ProjectNotFound, CodeNotFound)),
    example=RevokedCodes(requested_count=100, revoked_count=98, unchanged_count=2),
)
async def revoke_codes(ctx: Ctx, scope: Tenant, body: RevokeCodes) -> RevokedCodes:
    """Revoke up to 100 Codes of one project, all or none. Codes that are already revoked or expired do not change."""
    revoked = await service.revoke_codes(ctx, scope, body.project_id, body.xr_ids)
    return RevokedCodes(
        requested_count=revoked.requested_count,
        revoked_count=revoked.revoked_count,
        unchanged_count=revoked.requested_count - revoked.revoked_count,
    )


def _bound_to(scope: TenantScope, filters: CodeFilter, order: CodeOrder) -> dict[str, str | None]:
    """Return what a cursor is bound to. It includes no time, because the status is judged when a page is read."""
    bound_to = {
        "organization_id": scope.organization_id,
        "confined_to": scope.project_id,
        "status": filters.status,
        "campaign_id": filters.campaign_id,
        "project_id": filters.project_id,
        "issuer": filters.issuer,
        "created_from": None if filters.from_at is None else format_timestamp(filters.from_at),
        "created_to": None if filters.to_at is None else format_timestamp(filters.to_at),
    }
    # Only what differs from the default: a cursor of an older release is one of this release, and the reverse.
    if filters.address_prefix is not None:
        bound_to["address_prefix"] = filters.address_prefix
    if order != NEWEST_FIRST:
        bound_to |= {"sort": order.by, "order": order.direction}
    return bound_to
