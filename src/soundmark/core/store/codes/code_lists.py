"""Pages of the table `codes`. Each order, and each filter with an index, has a statement of its own."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, LiteralString

from soundmark.core.domain.codes.address import bounds_of
from soundmark.core.domain.codes.code import CodeStatus, ListedCode
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.kit.postgres.transaction import AnyTx, Tx
from soundmark.kit.text.paging import Position


@dataclass(frozen=True, slots=True)
class CodeFilter:
    """A filter of Codes; None matches everything. Issued at or after `from_at`, and before `to_at`.

    The `address_prefix` is a text with which the address of each Code begins: `domain.codes.address`.
    """

    status: CodeStatus | None = None
    campaign_id: str | None = None
    project_id: str | None = None
    issuer: str | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None
    address_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class CodeOrder:
    """The order of a list; Codes with the same time are in the order of their ids, in the same direction."""

    by: Literal["issued_at", "expires_at"] = "issued_at"
    direction: Literal["desc", "asc"] = "desc"


NEWEST_FIRST: Final = CodeOrder()

_MILLISECOND: Final = timedelta(milliseconds=1)
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
# Under row-level security, an index can be used for these comparisons, but not for LIKE or starts_with.
_AT_ADDRESS: Final[LiteralString] = " AND address >= %(address_from)s::bytea AND address < %(address_before)s::bytea"
_MATCHING: Final[LiteralString] = """
       AND (%(issuer)s::text IS NULL OR issuer = %(issuer)s)
       AND (%(status)s::text IS NULL
            OR %(status)s = CASE WHEN revoked_at IS NOT NULL THEN 'revoked'
                                 WHEN expires_at > %(now)s THEN 'active'
                                 ELSE 'expired' END)
"""
# Each page must start in the index where the previous page ended. The times are therefore bounds, not `IS NULL OR`.
# They are bare parameters: under row-level security, `COALESCE` cannot use an index. And there is only one bound at the
# beginning of the page: with one for the position and one for the time, the planner might choose the wrong one for the
# index. Ordered by expiry, there are two for the same place, because the index of expiries has no ids
# (`store.webhooks.expiries`).
_ORDERS: Final[Mapping[CodeOrder, LiteralString]] = {
    CodeOrder("issued_at", "desc"): """
       AND (issued_at, xr_id) < (%(after_at)s::timestamptz, %(after_id)s::text)
       AND issued_at >= %(from_at)s::timestamptz
     ORDER BY issued_at DESC, xr_id DESC
     LIMIT %(limit)s
    """,
    CodeOrder("issued_at", "asc"): """
       AND (issued_at, xr_id) > (%(after_at)s::timestamptz, %(after_id)s::text)
       AND issued_at < %(to_at)s::timestamptz
     ORDER BY issued_at, xr_id
     LIMIT %(limit)s
    """,
    CodeOrder("expires_at", "desc"): """
       AND expires_at <= %(after_at)s::timestamptz
       AND (expires_at, xr_id) < (%(after_at)s::timestamptz, %(after_id)s::text)
       AND issued_at >= %(from_at)s::timestamptz
       AND issued_at < %(to_at)s::timestamptz
     ORDER BY expires_at DESC, xr_id DESC
     LIMIT %(limit)s
    """,
    CodeOrder("expires_at", "asc"): """
       AND expires_at >= %(after_at)s::timestamptz
       AND (expires_at, xr_id) > (%(after_at)s::timestamptz, %(after_id)s::text)
       AND issued_at >= %(from_at)s::timestamptz
       AND issued_at < %(to_at)s::timestamptz
     ORDER BY expires_at, xr_id
     LIMIT %(limit)s
    """,
}
# The collation of the database may be another one, and an archive is the same everywhere. The index gives the order of
# the times, so that the server sorts only Codes of the same time.
_OLDEST_FIRST: Final[LiteralString] = ' ORDER BY issued_at, xr_id COLLATE "C"'
_OLDEST_IN_ORGANIZATION: Final[LiteralString] = _LISTED + _OLDEST_FIRST
_OLDEST_IN_PROJECT: Final[LiteralString] = _LISTED + _OF_PROJECT + _OLDEST_FIRST


async def list_page(
    tx: AnyTx,
    scope: TenantScope,
    filters: CodeFilter,
    order: CodeOrder,
    *,
    after: Position | None,
    limit: int,
    now: datetime,
) -> list[ListedCode]:
    """Return up to `limit` Codes of the organisation that match the filter at `now`, in this order, after `after`.

    An API key gets only the Codes of its project.
    """
    project_id = filters.project_id if scope.project_id is None else scope.project_id
    assert scope.project_id is None or filters.project_id in {None, project_id}, "another project was refused earlier"
    after = _begin(filters, order, after, now)
    address_from, address_before = (None, None) if filters.address_prefix is None else bounds_of(filters.address_prefix)
    return await tx.all(
        ListedCode,
        _LISTED
        + (_OF_PROJECT if project_id is not None else "")
        + (_OF_CAMPAIGN if filters.campaign_id is not None else "")
        + (_AT_ADDRESS if filters.address_prefix is not None else "")
        + _MATCHING
        + _ORDERS[order],
        {
            "organization_id": scope.organization_id,
            "project_id": project_id,
            "campaign_id": filters.campaign_id,
            "address_from": address_from,
            "address_before": address_before,
            "issuer": filters.issuer,
            "status": filters.status,
            "from_at": filters.from_at or _BEGINNING_OF_TIME,
            "to_at": filters.to_at or _END_OF_TIME,
            "after_at": after.created_at,
            "after_id": after.id,
            "now": now,
            "limit": limit,
        },
        # How many Codes an address has, or a project in the order of expiry, is for the planner to estimate each time.
        plan_anew=filters.address_prefix is not None or order.by == "expires_at",
    )


def _begin(filters: CodeFilter, order: CodeOrder, after: Position | None, now: datetime) -> Position:
    """Return the position at which the page begins: after it, Codes match the filter as far as the order tells."""
    if order == CodeOrder("issued_at", "desc"):
        return after or Position(filters.to_at or _END_OF_TIME, "")
    if order == CodeOrder("issued_at", "asc"):
        return after or Position(filters.from_at or _BEGINNING_OF_TIME, "")
    if order.direction == "desc":
        # Active Codes come first: those that have expired begin at the present.
        first = Position(now + _MILLISECOND if filters.status == "expired" else _END_OF_TIME, "")
        return first if after is None else min(first, after, key=_key)
    first = Position(now if filters.status == "active" else _BEGINNING_OF_TIME, "")
    return first if after is None else max(first, after, key=_key)


def _key(position: Position) -> tuple[datetime, str]:
    return position.created_at, position.id


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
