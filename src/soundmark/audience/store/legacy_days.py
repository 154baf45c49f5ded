"""The table `legacy_days`."""

from collections.abc import Sequence
from datetime import date

from soundmark.audience.domain.integration import Workspace
from soundmark.kit.postgres.transaction import Tx
from soundmark.wire.audience_report import LegacyDay
from soundmark.wire.private.measurements import LegacyCount


async def insert_or_update(tx: Tx, workspace: Workspace, counts: Sequence[LegacyCount]) -> None:
    """Store the counts of days, replacing earlier counts. Lock order: by day, docs/locks.md."""
    await tx.run(
        """
        INSERT INTO legacy_days (organization_id, project_id, day, events)
        SELECT %(organization_id)s, %(project_id)s, given.day, given.events
          FROM unnest(%(days)s::date[], %(events)s::bigint[]) AS given (day, events)
         ORDER BY given.day
            ON CONFLICT (organization_id, project_id, day) DO UPDATE
           SET events = excluded.events
        """,
        {
            "organization_id": workspace.organization_id,
            "project_id": workspace.project_id,
            "days": [count.day for count in counts],
            "events": [count.events for count in counts],
        },
    )


async def find_first_day(tx: Tx, workspace: Workspace) -> date | None:
    """Return the oldest day that has a count."""
    day: date | None = await tx.value(
        """
        SELECT min(day)
          FROM legacy_days
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
        """,
        {"organization_id": workspace.organization_id, "project_id": workspace.project_id},
    )
    return day


async def list_days(tx: Tx, workspace: Workspace, *, first: date, last: date, limit: int) -> list[LegacyDay]:
    """Return up to `limit` counts of the days from `first` to `last`, inclusive, ascending."""
    return await tx.all(
        LegacyDay,
        """
        SELECT day, events
          FROM legacy_days
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
           AND day BETWEEN %(first)s AND %(last)s
         ORDER BY day
         LIMIT %(limit)s
        """,
        {
            "organization_id": workspace.organization_id,
            "project_id": workspace.project_id,
            "first": first,
            "last": last,
            "limit": limit,
        },
    )
