"""Commands on legacy aggregates."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from soundmark.audience.context import Context
from soundmark.audience.domain.integration import Workspace
from soundmark.audience.domain.legacy import DAYS_AT_ONCE_MAX, LegacyCount
from soundmark.audience.problems import ReportTooLarge
from soundmark.audience.store import legacy_days
from soundmark.kit.problems import FieldError, ValidationFailed
from soundmark.wire.audience_report import LEGACY_LABEL, LegacyDay, LegacyReport, Period

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


async def put_legacy_days(ctx: Context, workspace: Workspace, counts: Sequence[LegacyCount]) -> None:
    """Each of the days has the count that was given, whatever it had before; or none of them changed.

    Raises: ValidationFailed for a day that has not begun.
    """
    today = ctx.clock.now().date()
    for place, count in enumerate(counts):
        if count.day > today:
            raise ValidationFailed(errors=(FieldError("body", f"/days/{place}/day", "has not begun yet"),))
    async with ctx.db.transaction() as tx:
        await legacy_days.insert_or_update(tx, workspace, counts)


async def read_legacy_report(
    ctx: Context, workspace: Workspace, *, from_at: datetime | None, to_at: datetime | None
) -> LegacyReport:
    """The counts of the whole UTC days that the period touches, labelled as what they are.

    Without `from_at` it begins with the first day that has a count, without `to_at` it ends now.

    Raises: ValidationFailed where the period does not begin before it ends; ReportTooLarge.
    Source: API v1, "Audience report content"; contract, section 6, "Legacy report".
    """
    end_at = to_at or ctx.clock.now()
    if end_at <= _BEGINNING:
        raise _refused()
    last = (end_at - timedelta(milliseconds=1)).date()
    async with ctx.db.snapshot() as tx:
        begin_at = from_at or _midnight(min(await legacy_days.find_first_day(tx, workspace) or last, last))
        if begin_at >= end_at:
            raise _refused()
        found = await legacy_days.list_days(tx, workspace, first=begin_at.date(), last=last, limit=DAYS_AT_ONCE_MAX + 1)
    if len(found) > DAYS_AT_ONCE_MAX:
        raise ReportTooLarge
    return LegacyReport(
        label=LEGACY_LABEL,
        reach_comparable_to_xr_v1=False,
        organization_id=workspace.organization_id,
        project_id=workspace.project_id,
        period=Period.model_validate({"from": begin_at, "to": end_at}),
        by_day=[LegacyDay(day=count.day, events=count.events) for count in found],
        events=sum(count.events for count in found),
    )


def _refused() -> ValidationFailed:
    return ValidationFailed(errors=(FieldError("query", "/from", "must precede the end of the period"),))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
