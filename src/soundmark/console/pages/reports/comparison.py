"""The periods that a report's page offers, and how its totals changed against the period before."""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from typing import Final

from soundmark_sdk.client.records import AudienceReport

from soundmark.console.exports.report_request import ReportRequest
from soundmark.console.lookups import find_integration
from soundmark.console.pages.reports.report_filters import list_chosen_days, make_filters
from soundmark.console.parts import read_part
from soundmark.console.troubles import TenantUnknown, TooManyListed
from soundmark.console.visit import Visit

_PRESETS: Final = (("days_7", 7), ("days_30", 30), ("all", None))


@dataclass(frozen=True, slots=True)
class PeriodPreset:
    """A period that one click chooses."""

    name: str
    path: str
    is_current: bool


def list_presets(visit: Visit) -> list[PeriodPreset]:
    """Return the periods on offer. Each ends today, and keeps the other filters."""
    chosen = tuple(list_chosen_days(visit).values())
    today = visit.console.clock.now().astimezone(UTC).date()
    presets = []
    for name, days in _PRESETS:
        first = None if days is None else (today - timedelta(days=days - 1)).isoformat()
        last = None if days is None else today.isoformat()
        path = visit.here(**{"from": first, "to": last, "all": None})
        presets.append(PeriodPreset(name, path, chosen == (first, last)))
    return presets


async def find_report_before(visit: Visit, request: ReportRequest) -> AudienceReport | None:
    """Return the report about as long a time before the request's period.

    None if the period has no beginning, or if events of the time before are deleted already, or if the report fails
    or is late, since a page without a comparison is better than none.

    Raises: as `read_part`.
    """
    if request.from_at is None:
        return None
    now = visit.console.clock.now()
    length = min(request.to_at or now, now) - request.from_at
    try:
        before = replace(request, from_at=request.from_at - length, to_at=request.from_at)
        reading = visit.core.audience.report(request.integration_id, make_filters(before))
        found = await read_part(asyncio.gather(find_integration(visit), reading))
    except (TenantUnknown, TooManyListed, OverflowError):
        return None
    if found is None:
        return None
    integration, report = found
    is_kept = request.from_at - length >= now - timedelta(days=integration.retention_days)
    return report if is_kept and length > timedelta() else None


def write_change(visit: Visit, before: int | None, now: int) -> str | None:
    """Return how a total changed, or None without anything to compare it with."""
    if before is None:
        return None
    if not before:
        return visit.say("reports.nothing_before")
    change = visit.language.change(before, now)
    return visit.say("reports.change", change=change, before=visit.language.number(before))
