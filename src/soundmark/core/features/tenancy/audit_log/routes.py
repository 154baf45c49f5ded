"""The routes of the audit log."""

import tempfile
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from soundmark.core.domain.tenancy.audit import AuditAction, AuditEntry
from soundmark.core.domain.tenancy.audit_chain import Verification
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, Tenant
from soundmark.core.edge.refusals import invalid
from soundmark.core.features.tenancy.audit_log import example, service
from soundmark.core.features.tenancy.audit_log.wire import (
    CSV_COLUMNS,
    AuditEntryPage,
    AuditVerification,
    csv_head,
    csv_lines,
    entry_view,
    json_lines,
    verification_view,
)
from soundmark.core.store.tenancy.audit import AuditFilter
from soundmark.kit.http.responses.download import Download
from soundmark.kit.http.responses.negotiation import choose_media_type
from soundmark.kit.http.responses.problems import NotAcceptable
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.shape import Timestamp

operations = Operations("Audit")

_JSON: Final = "application/json"
_LINES: Final = "application/x-ndjson"
_CSV: Final = "text/csv"
_VARY: Final = {"vary": "Accept"}
_IN_MEMORY_BYTES_MAX: Final = 1024 * 1024
_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "content": {
            _LINES: {
                "schema": {
                    "type": "string",
                    "description": "Every entry that matches the filters, newest first, one JSON object on each line.",
                }
            },
            _CSV: {
                "schema": {
                    "type": "string",
                    "description": (
                        "Every entry that matches the filters, newest first, as CSV (RFC 4180, UTF-8) with the columns "
                        f"{', '.join(CSV_COLUMNS)}. Every cell is quoted, null is an empty cell, and `metadata` is "
                        "JSON. A cell that a spreadsheet could interpret as a formula begins with an apostrophe."
                    ),
                }
            },
        }
    }
}

ActionFilter = Annotated[AuditAction | None, Query(description="Only entries with this action.")]
ActorFilter = Annotated[
    str | None,
    Query(
        max_length=255, pattern=r"^[^\x00]*$", description="Only entries by this person (subject id) or API key (id)."
    ),
]
FromFilter = Annotated[
    Timestamp | None, Query(alias="from", description="Only entries created at or after this time (RFC 3339).")
]
ToFilter = Annotated[
    Timestamp | None, Query(alias="to", description="Only entries created before this time (RFC 3339).")
]


async def _read_filter(
    *, action: ActionFilter = None, actor: ActorFilter = None, from_at: FromFilter = None, to_at: ToFilter = None
) -> AuditFilter:
    """Return the filters of a request (a dependency)."""
    return AuditFilter(action=action, actor_id=actor, from_at=from_at, to_at=to_at)


@operations.add(
    "GET",
    "/v1/audit-log",
    Operation("audit_log.read", problems=(InvalidCursor, NotAcceptable)),
    responses=_ANSWERS,
    response_model=AuditEntryPage,
    example=AuditEntryPage(data=[entry_view(example.AUDIT_ENTRY)], next_cursor=None),
)
async def list_audit_entries(
    request: Request,
    ctx: Ctx,
    scope: Tenant,
    filters: Annotated[AuditFilter, Depends(_read_filter)],
    *,
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> Response:
    """List the audit entries of an organisation, newest first. `Accept` selects a full download as NDJSON or CSV."""
    media_type = choose_media_type(request.headers.getlist("accept"), (_JSON, _LINES, _CSV))
    if media_type is None:
        raise NotAcceptable(f"This is available as {_JSON}, {_LINES} and {_CSV}.")
    if media_type != _JSON:
        if cursor is not None:
            raise invalid("query", "cursor", "must be absent: a download is complete, not paged")
        return await _download(ctx, scope, filters, media_type)
    bound_to = {
        "organization_id": scope.organization_id,
        "action": filters.action,
        "actor": filters.actor_id,
        "from": None if filters.from_at is None else format_timestamp(filters.from_at),
        "to": None if filters.to_at is None else format_timestamp(filters.to_at),
    }
    cursors = ctx.cursors.bind("audit-log", **bound_to)
    page = await service.list_entries(ctx, scope, filters, before=cursors.read(cursor), limit=limit)
    answer = cursors.show(AuditEntryPage, page, entry_view)
    return Response(answer.model_dump_json(), media_type=_JSON, headers=_VARY)


@operations.add(
    "GET",
    "/v1/audit-log/verification",
    Operation("audit_log.verify"),
    example=verification_view(Verification(True, entries=41, unsealed=1, first_broken=None), example.LOGGED_HEAD),
)
async def verify_audit_log(ctx: Ctx, scope: Tenant) -> AuditVerification:
    """Verify the audit chain of an organisation by recomputing it."""
    return verification_view(*await service.verify_chain(ctx, scope))


async def _download(ctx: Ctx, scope: TenantScope, filters: AuditFilter, media_type: str) -> Response:
    """Return the whole log, read before its first byte is sent, so that no slow client holds a database snapshot open.

    A log that exceeds a mebibyte waits in a temporary file, not in memory.
    """
    encode: Callable[[Sequence[AuditEntry]], bytes] = csv_lines if media_type == _CSV else json_lines
    ending = "csv" if media_type == _CSV else "ndjson"
    content = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES_MAX)  # noqa: SIM115 - the response closes it

    def take(entries: Sequence[AuditEntry]) -> None:
        content.write(encode(entries))

    try:
        if media_type == _CSV:
            content.write(csv_head())
        await service.read_all(ctx, scope, filters, take)
    except BaseException:
        content.close()
        raise
    return Download(content, media_type, name=f"audit-log-{scope.organization_id}.{ending}", headers=_VARY)
