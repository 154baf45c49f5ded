"""The table `event_months`, as it is reported. Ingestion locks and counts its rows in its own way."""

from dataclasses import dataclass
from datetime import date

from soundmark.audience.domain.integration import Mode
from soundmark.kit.postgres import Tx


@dataclass(frozen=True, slots=True)
class _Month:
    mode: Mode
    events: int


async def count_events(tx: Tx, organization_id: str, *, first_day: date) -> dict[Mode, int]:
    """How many events of an organisation were recorded in one month, by mode; a mode without any may be left out."""
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
