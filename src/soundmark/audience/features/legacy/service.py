"""Commands on legacy aggregates."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from soundmark.audience.context import Context
from soundmark.audience.domain.integration import Workspace
from soundmark.audience.steps.tenancy import hold_unpurged
from soundmark.audience.store import legacy_days
from soundmark.kit.http.responses.problems import FieldError, ValidationFailed
from soundmark.wire.audience_report import LEGACY_LABEL, LegacyReport, Period
from soundmark.wire.private.measurements import (
    LEGACY_DAYS_MAX,
    LegacyReportQuery,
    PutLegacyDaysRequest,
    PutLegacyDaysResponse,
)
from soundmark.wire.private.problems import ReportTooLarge

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


async def put_legacy_days(ctx: Context, request: PutLegacyDaysRequest) -> PutLegacyDaysResponse:
    """Set the counts of all the days of the request, or of none.

    Raises: ValidationFailed for a day in the future; TenantPurged.
    """
    today = ctx.clock.now().date()
    for place, count in enumerate(request.days):
        if count.day > today:
            raise ValidationFailed(errors=(FieldError("body", f"/days/{place}/day", "has not begun yet"),))
    async with ctx.db.transaction() as tx:
        await hold_unpurged(tx, request.organization_id, request.project_id)
        await legacy_days.insert_or_update(tx, Workspace(request.organization_id, request.project_id), request.days)
    return PutLegacyDaysResponse(days=len(request.days))


async def read_legacy_report(ctx: Context, query: LegacyReportQuery) -> LegacyReport:
    """Return the labelled counts of the whole UTC days that the period touches.

    Raises: ValidationFailed unless the period begins before it ends; ReportTooLarge.
    Source: API v1, "Audience report content"; contract, section 6, "Legacy report".
    """
    workspace = Workspace(query.organization_id, query.project_id)
    end_at = query.to_at or ctx.clock.now()
    if end_at <= _BEGINNING:
        raise _refuse_period()
    last = (end_at - timedelta(milliseconds=1)).date()
    async with ctx.db.snapshot() as tx:
        begin_at = query.from_at or _midnight(min(await legacy_days.find_first_day(tx, workspace) or last, last))
        if begin_at >= end_at:
            raise _refuse_period()
        first = begin_at.date()
        days = await legacy_days.list_days(tx, workspace, first=first, last=last, limit=LEGACY_DAYS_MAX + 1)
    if len(days) > LEGACY_DAYS_MAX:
        raise ReportTooLarge
    return LegacyReport(
        label=LEGACY_LABEL,
        reach_comparable_to_xr_v1=False,
        organization_id=workspace.organization_id,
        project_id=workspace.project_id,
        period=Period.model_validate({"from": begin_at, "to": end_at}),
        by_day=days,
        events=sum(day.events for day in days),
    )


def _refuse_period() -> ValidationFailed:
    return ValidationFailed(errors=(FieldError("query", "/from", "must precede the end of the period"),))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
