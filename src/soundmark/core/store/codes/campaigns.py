"""The table `campaigns`."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Final, LiteralString

import psycopg

from soundmark.core.domain.codes.campaign import Campaign, Summary
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import CampaignNameConflict
from soundmark.kit.postgres.paging import NEWEST_FIRST, page_params
from soundmark.kit.postgres.transaction import AnyTx, Tx
from soundmark.kit.text.paging import Position

_NAMES_LOCK: Final = 3  # Kind of advisory lock: docs/locks.md.
_SELECT: Final[LiteralString] = """
    SELECT id, organization_id, project_id, name, starts_at, ends_at, created_at, archived_at
      FROM campaigns
"""
_ONE: Final[LiteralString] = (
    _SELECT
    + """
     WHERE organization_id = %(organization_id)s
       AND (%(confined_to)s::text IS NULL OR project_id = %(confined_to)s)
       AND id = %(campaign_id)s
"""
)


async def insert(tx: Tx, scope: TenantScope, campaign: Campaign) -> None:
    """Insert a campaign.

    Raises: CampaignNameConflict.
    """
    try:
        await tx.run(
            """
            INSERT INTO campaigns (organization_id, id, project_id, name, starts_at, ends_at, created_at)
            VALUES (%(organization_id)s, %(campaign_id)s, %(project_id)s, %(name)s, %(starts_at)s, %(ends_at)s,
                    %(created_at)s)
            """,
            {**asdict(campaign), "organization_id": scope.organization_id, "campaign_id": campaign.id},
        )
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name == "campaigns_name_key":
            raise CampaignNameConflict from None
        raise


async def lock_names(tx: Tx, scope: TenantScope) -> None:
    """Keep everybody else from renaming the organisation's campaigns until the transaction ends.

    Two transactions that swap names would otherwise wait for each other. Lock order: docs/locks.md.
    """
    await tx.run(
        "SELECT pg_advisory_xact_lock(%(kind)s, hashtext(%(organization_id)s))",
        {"kind": _NAMES_LOCK, "organization_id": scope.organization_id},
    )


async def lock(tx: Tx, scope: TenantScope, campaign_id: str) -> Campaign | None:
    """Lock one campaign until the transaction ends, also against issuing under it. Lock order: docs/locks.md."""
    return await tx.one_or_none(Campaign, _ONE + "FOR UPDATE", _make_params(scope, campaign_id))


async def update(tx: Tx, scope: TenantScope, campaign: Campaign) -> None:
    """Update the name and schedule of a locked campaign.

    Raises: CampaignNameConflict.
    """
    try:
        await tx.run(
            """
            UPDATE campaigns
               SET name = %(name)s,
                   starts_at = %(starts_at)s,
                   ends_at = %(ends_at)s
             WHERE organization_id = %(organization_id)s
               AND id = %(campaign_id)s
            """,
            {**asdict(campaign), "organization_id": scope.organization_id, "campaign_id": campaign.id},
        )
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name == "campaigns_name_key":
            raise CampaignNameConflict from None
        raise


async def update_archived(tx: Tx, scope: TenantScope, campaign_id: str, *, now: datetime) -> None:
    """Mark one campaign archived, which is final."""
    await tx.run(
        """
        UPDATE campaigns
           SET archived_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND id = %(campaign_id)s
           AND archived_at IS NULL
        """,
        {"organization_id": scope.organization_id, "campaign_id": campaign_id, "now": now},
    )


async def list_newest_first(
    tx: AnyTx, scope: TenantScope, project_id: str, *, before: Position | None, limit: int
) -> list[Campaign]:
    """Return up to `limit` campaigns of one project, newest first."""
    return await tx.all(
        Campaign,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
           AND (%(confined_to)s::text IS NULL OR project_id = %(confined_to)s)
        """
        + NEWEST_FIRST,
        {
            "organization_id": scope.organization_id,
            "project_id": project_id,
            "confined_to": scope.project_id,
            **page_params(before, limit),
        },
    )


def list_oldest_first(
    tx: Tx, scope: TenantScope, *, project_id: str | None, rows_max: int
) -> AsyncGenerator[list[Campaign], None]:
    """Yield pages of the campaigns of the organisation or one project, oldest first, then by the bytes of their ids."""
    # The collation of the database may be another one, and an archive is the same everywhere.
    return tx.pages(
        Campaign,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
         ORDER BY created_at, id COLLATE "C"
        """,
        {"organization_id": scope.organization_id, "project_id": project_id},
        rows_max=rows_max,
    )


async def find_summary(tx: Tx, scope: TenantScope, campaign_id: str, *, now: datetime) -> Summary | None:
    """Return one campaign and the numbers of its Codes, by their status at `now`.

    It is one statement, so that the numbers of all states add up to the number issued.
    """
    row = await tx.one_or_none(
        _SummaryRow,
        """
        SELECT c.id, c.organization_id, c.project_id, c.name, c.starts_at, c.ends_at, c.created_at, c.archived_at,
               n.issued_count, n.active_count, n.expired_count, n.revoked_count, n.audience_enabled_count,
               n.first_issued_at, n.last_issued_at
          FROM campaigns c
         CROSS JOIN LATERAL (
               SELECT count(*) AS issued_count,
                      count(*) FILTER (WHERE revoked_at IS NULL AND expires_at > %(now)s) AS active_count,
                      count(*) FILTER (WHERE revoked_at IS NULL AND expires_at <= %(now)s) AS expired_count,
                      count(*) FILTER (WHERE revoked_at IS NOT NULL) AS revoked_count,
                      count(*) FILTER (WHERE audience_integration_id IS NOT NULL) AS audience_enabled_count,
                      min(issued_at) AS first_issued_at,
                      max(issued_at) AS last_issued_at
                 FROM codes
                WHERE organization_id = %(organization_id)s
                  AND campaign_id = c.id) n
         WHERE c.organization_id = %(organization_id)s
           AND (%(confined_to)s::text IS NULL OR c.project_id = %(confined_to)s)
           AND c.id = %(campaign_id)s
        """,
        {**_make_params(scope, campaign_id), "now": now},
    )
    return None if row is None else row.summary()


async def find(tx: AnyTx, scope: TenantScope, campaign_id: str) -> Campaign | None:
    """Return one campaign of the organisation, and of the only project the caller may reach."""
    return await tx.one_or_none(Campaign, _ONE, _make_params(scope, campaign_id))


async def hold_many(tx: AnyTx, organization_id: str, campaign_ids: Sequence[str]) -> dict[str, Campaign]:
    """Keep campaigns from being changed or stopped until the transaction ends; return those that exist, by id.

    They are locked in the order of their ids. Lock order: docs/locks.md.
    """
    held = await tx.all(
        Campaign,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND id = ANY(%(campaign_ids)s::text[])
         ORDER BY id
           FOR SHARE
        """,
        {"organization_id": organization_id, "campaign_ids": list(campaign_ids)},
    )
    return {campaign.id: campaign for campaign in held}


def _make_params(scope: TenantScope, campaign_id: str) -> dict[str, Any]:
    """Return the parameters of `_ONE`."""
    return {"organization_id": scope.organization_id, "confined_to": scope.project_id, "campaign_id": campaign_id}


@dataclass(frozen=True, slots=True)
class _SummaryRow:
    """A row of `find_summary`: the campaign's columns and the numbers of its Codes."""

    id: str
    organization_id: str
    project_id: str
    name: str
    starts_at: datetime | None
    ends_at: datetime | None
    created_at: datetime
    archived_at: datetime | None
    issued_count: int
    active_count: int
    expired_count: int
    revoked_count: int
    audience_enabled_count: int
    first_issued_at: datetime | None
    last_issued_at: datetime | None

    def summary(self) -> Summary:
        return Summary(
            campaign=Campaign(**{field.name: getattr(self, field.name) for field in fields(Campaign)}),
            issued_count=self.issued_count,
            active_count=self.active_count,
            expired_count=self.expired_count,
            revoked_count=self.revoked_count,
            audience_enabled_count=self.audience_enabled_count,
            first_issued_at=self.first_issued_at,
            last_issued_at=self.last_issued_at,
        )
