"""The filters of reports, as URLs have them."""

import contextlib
from datetime import UTC, date, datetime, time, timedelta

from soundmark_sdk.client import ReportFilters

from soundmark.console.exports.report_request import ReportRequest
from soundmark.console.forms import FieldRefused
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit
from soundmark.kit.text.timestamps import parse_timestamp


def read_request(visit: Visit, integration_id: str) -> ReportRequest:
    """Return what a page or an export asks for.

    People choose UTC days for `from` and `to`; the last day is included. Links to exports name exact times instead.

    Raises: FieldRefused. TenantUnknown.
    """
    from_at, to_at = _read_end(visit, "from"), _read_end(visit, "to", last=timedelta(days=1))
    if from_at is not None and to_at is not None and from_at >= to_at:
        raise FieldRefused("from", "reports.period_reversed")
    return ReportRequest(
        organization_id=visit.organization_id,
        project_id=visit.project_id,
        integration_id=integration_id,
        campaign_id=_read_id(visit, "campaign_id"),
        xr_id=_read_id(visit, "xr_id"),
        from_at=from_at,
        to_at=to_at,
    )


def list_chosen_days(visit: Visit) -> dict[str, str | None]:
    """Return the days that the fields of the period show, also for exact times; what is no time stays as it is."""
    days = {}
    for name, after_last in (("from", timedelta()), ("to", timedelta(milliseconds=1))):
        days[name] = text = visit.query(name)
        with contextlib.suppress(ValueError, OverflowError):
            if text is not None and "T" in text:
                days[name] = (parse_timestamp(text) - after_last).date().isoformat()
    return days


def make_filters(request: ReportRequest) -> ReportFilters:
    """Return the filters of a request as the API's client takes them."""
    return ReportFilters(
        from_at=request.from_at, to_at=request.to_at, campaign_id=request.campaign_id, xr_id=request.xr_id
    )


def _read_id(visit: Visit, name: str) -> str | None:
    """Return the id of a filter, which the path of a call may have; dots would change that path."""
    text = visit.query(name)
    if text in {".", ".."}:
        raise TenantUnknown
    return text


def _read_end(visit: Visit, name: str, *, last: timedelta = timedelta()) -> datetime | None:
    text = visit.query(name)
    if text is None:
        return None
    try:
        if "T" in text:
            return parse_timestamp(text)
        return datetime.combine(date.fromisoformat(text), time(), UTC) + last
    except (ValueError, OverflowError):
        raise FieldRefused(name, "reports.not_a_day") from None
