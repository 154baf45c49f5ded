"""The table `event_months`, for reports; `store.ingestion` has the statements that lock and count its rows."""

from dataclasses import dataclass
from datetime import date

from soundmark.kit.postgres.transaction import Tx
from soundmark.wire.shape import AudienceMode


@dataclass(frozen=True, slots=True)
class _Month:
    mode: AudienceMode
    events: int


async def count_events(tx: Tx, organization_id: str, *, first_day: date) -> dict[AudienceMode, int]:
    """Return the number of an organisation's events of one month by mode; a mode without any may be missing."""
    rows = await tx.all(
        _Month,
        """
        SELECT mode, events
          FROM event_months
         WHERE organization_id = %(organization_id)s
           AND first_day = %(first_day)s
        """,
        {"organization_id": organization_id, "first_day": first_day},
    )
    return {row.mode: row.events for row in rows}
