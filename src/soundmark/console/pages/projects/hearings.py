"""How often a project's Codes were heard on the last days, over the integrations that measure them."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import Final

from soundmark_sdk.client.records import Integration
from soundmark_sdk.client.requests import ReportFilters

from soundmark.console.visit import Visit

DAYS: Final = 7
# A project has one or two; a page does not wait for the reports of many.
_ADDED_UP_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Hearings:
    """The events of each of the last days (UTC), oldest first, and the integrations that measured them."""

    by_day: tuple[tuple[date, int], ...]
    integrations: tuple[Integration, ...]
    is_complete: bool

    @property
    def events(self) -> int:
        """All events of these days."""
        return sum(events for _, events in self.by_day)

    @property
    def highest(self) -> int:
        """The events of the day with most of them."""
        return max(events for _, events in self.by_day)


async def find_hearings(visit: Visit) -> Hearings:
    """Return what the newest active integrations measured.

    Raises: soundmark_sdk.ClientFailure.
    """
    listed = [each for each in (await visit.core.integrations.page()).data if each.status == "active"]
    added_up = listed[:_ADDED_UP_MAX]
    today = visit.console.clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    period = ReportFilters(from_at=today - timedelta(days=DAYS - 1))
    reports = await asyncio.gather(*(visit.core.audience.report(each.id, period) for each in added_up))
    counts = Counter[str]()
    for report in reports:
        counts.update({row.day: row.events for row in report.by_day})
    days = [(today - timedelta(days=back)).date() for back in reversed(range(DAYS))]
    return Hearings(
        tuple((day, counts[day.isoformat()]) for day in days), tuple(added_up), len(added_up) == len(listed)
    )
