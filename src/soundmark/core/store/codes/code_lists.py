"""Pages of the table `codes`. Each filter with an index has a statement of its own."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, LiteralString

from soundmark.core.domain.codes.code import CodeStatus, ListedCode
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position


@dataclass(frozen=True, slots=True)
class CodeFilter:
    """A filter of Codes; None matches everything. Issued at or after `from_at`, and before `to_at`."""

    status: CodeStatus | None = None
    campaign_id: str | None = None
    project_id: str | None = None
    issuer: str | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None


_BEGINNING_OF_TIME: Final = datetime.min.replace(tzinfo=UTC)
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)
_LISTED: Final[LiteralString] = """
    SELECT xr_id, organization_id, project_id, campaign_id, issuer, issued_at, expires_at, broadcast_token,
           audience_integration_id, key_id, revoked_at
      FROM codes
     WHERE organization_id = %(organization_id)s
"""
_OF_PROJECT: Final[LiteralString] = " AND project_id = %(project_id)s"
_OF_CAMPAIGN: Final[LiteralString] = " AND campaign_id = %(campaign_id)s"
# Each page must start in the index where the previous page ended. The times are therefore bounds, not `IS NULL OR`.
# They are bare parameters: under row-level security, `COALESCE` cannot use an index. And there is only one upper bound:
# with one for the position and one for the time, the planner might choose the wrong one for the index.
_NEWEST_FIRST: Final[LiteralString] = """
       AND (issued_at, xr_id) < (%(before_at)s::timestamptz, %(before_id)s::text)
       AND issued_at >= %(from_at)s::timestamptz
       AND (%(issuer)s::text IS NULL OR issuer = %(issuer)s)
       AND (%(status)s::text IS NULL
            OR %(status)s = CASE WHEN revoked_at IS NOT NULL THEN 'revoked'
                                 WHEN expires_at > %(now)s THEN 'active'
                                 ELSE 'expired' END)
     ORDER BY issued_at DESC, xr_id DESC
     LIMIT %(limit)s
"""
# The collation of the database may be another one, and an archive is the same everywhere. The index gives the order of
# the times, so that the server sorts only Codes of the same time.
_OLDEST_FIRST: Final[LiteralString] = ' ORDER BY issued_at, xr_id COLLATE "C"'
_IN_ORGANIZATION: Final[LiteralString] = _LISTED + _NEWEST_FIRST
_IN_PROJECT: Final[LiteralString] = _LISTED + _OF_PROJECT + _NEWEST_FIRST
_IN_CAMPAIGN: Final[LiteralString] = _LISTED + _OF_CAMPAIGN + _NEWEST_FIRST
_IN_BOTH: Final[LiteralString] = _LISTED + _OF_PROJECT + _OF_CAMPAIGN + _NEWEST_FIRST
_OLDEST_IN_ORGANIZATION: Final[LiteralString] = _LISTED + _OLDEST_FIRST
_OLDEST_IN_PROJECT: Final[LiteralString] = _LISTED + _OF_PROJECT + _OLDEST_FIRST


async def list_newest_first(
    tx: Tx, scope: TenantScope, filters: CodeFilter, *, before: Position | None, limit: int, now: datetime
) -> list[ListedCode]:
    """Return up to `limit` Codes of the organisation that match the filter at `now`, newest first, after `before`.

    An API key gets only the Codes of its project.
    """
    project_id = filters.project_id if scope.project_id is None else scope.project_id
    assert scope.project_id is None or filters.project_id in {None, project_id}, "another project was refused earlier"
    # Every Code that matches was issued before `to_at`, and so was every Code after it.
    before = before or Position(filters.to_at or _END_OF_TIME, "")
    return await tx.all(
        ListedCode,
        _statement(of_project=project_id is not None, of_campaign=filters.campaign_id is not None),
        {
            "organization_id": scope.organization_id,
            "project_id": project_id,
            "campaign_id": filters.campaign_id,
            "issuer": filters.issuer,
            "status": filters.status,
            "from_at": filters.from_at or _BEGINNING_OF_TIME,
            "before_at": before.created_at,
            "before_id": before.id,
            "now": now,
            "limit": limit,
        },
    )


def list_oldest_first(
    tx: Tx, scope: TenantScope, *, project_id: str | None, rows_max: int
) -> AsyncGenerator[list[ListedCode], None]:
    """Yield pages of the Codes of the organisation or one project, oldest first, then by the bytes of their ids."""
    return tx.pages(
        ListedCode,
        _OLDEST_IN_ORGANIZATION if project_id is None else _OLDEST_IN_PROJECT,
        {"organization_id": scope.organization_id, "project_id": project_id},
        rows_max=rows_max,
    )


def _statement(*, of_project: bool, of_campaign: bool) -> LiteralString:
    if of_project and of_campaign:
        return _IN_BOTH
    if of_campaign:
        return _IN_CAMPAIGN
    return _IN_PROJECT if of_project else _IN_ORGANIZATION
