"""The sums of a report, and whether it answers what was asked.

Source: contract, section 6, "Sums reconcile"; section 10.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from soundmark.console.exports.answer_shapes import CampaignRow, CodeRow, DayRow, Report, Shape
from soundmark.console.exports.refusal import ExportRefused, require_equal
from soundmark.console.exports.report_request import ReportRequest
from soundmark.kit.text.timestamps import format_timestamp

# Each dimension of a report and the member that names its rows.
DIMENSIONS: Final = (
    ("by_day", "day"),
    ("by_receiver", "receiver_class"),
    ("by_frequency", "frequency"),
    ("by_campaign", "campaign_id"),
    ("by_xr_code", "xr_id"),
    ("by_country", "country"),
)
INTEGRITY_COUNTERS: Final = ("event_replays", "code_token_duplicates", "proof_replays")
_FREQUENCY_DECIMALS: Final = 4


def require_reconciled(report: Report) -> None:
    """Make sure that every sum of the report agrees.

    Raises: ExportRefused, which names the first that does not.
    """
    for dimension, key in DIMENSIONS:
        _require_unique(f"report.{dimension}", key, getattr(report, dimension))
    for dimension in ("by_day", "by_receiver", "by_campaign", "by_xr_code", "by_country"):
        _require_sum(f"report.{dimension}[].events", report.events, _sum(getattr(report, dimension), "events"))
    tokens = _sum(report.by_frequency, "tokens")
    events = sum(row.frequency * row.tokens for row in report.by_frequency)
    _require_sum("report.by_frequency[].tokens", report.estimated_reach, tokens)
    _require_sum("report.by_frequency[].frequency", report.events, events)
    # The rows of by_frequency are at least 1, so both totals are zero or neither is.
    average = round(report.events / report.estimated_reach, _FREQUENCY_DECIMALS) if report.estimated_reach else 0
    _require_sum("report.average_frequency", average, report.average_frequency)
    _require_possible_reach("report.by_day", report.estimated_reach, report.by_day)
    _require_possible_reach("report.by_campaign", report.estimated_reach, report.by_campaign)
    _require_possible_reach("report.by_xr_code", report.estimated_reach, report.by_xr_code)
    signals = report.integrity_signals
    _require_unique("report.integrity_signals.by_day", "day", signals.by_day)
    for counter in INTEGRITY_COUNTERS:
        counted = _sum(signals.by_day, counter)
        _require_sum(f"report.integrity_signals.by_day[].{counter}", getattr(signals, counter), counted)


def require_answered(report: Report, request: ReportRequest) -> None:
    """Make sure that the report is about what was asked.

    Raises: ExportRefused, which names the member that is about something else.
    """
    require_equal("report.integration_id", request.integration_id, report.integration_id)
    require_equal("report.filters.campaign_id", request.campaign_id, report.filters.campaign_id)
    require_equal("report.filters.xr_id", request.xr_id, report.filters.xr_id)
    for member, asked, answered in (
        ("from", request.from_at, report.period.from_),
        ("to", request.to_at, report.period.to),
    ):
        if asked is not None:
            require_equal(f"report.period.{member}", format_timestamp(asked), format_timestamp(answered))
    if request.campaign_id is not None:
        for number, campaign in enumerate(report.by_campaign):
            require_equal(f"report.by_campaign[{number}].campaign_id", request.campaign_id, campaign.campaign_id)
    if request.xr_id is not None:
        for number, code in enumerate(report.by_xr_code):
            require_equal(f"report.by_xr_code[{number}].xr_id", request.xr_id, code.xr_id)


def _sum(rows: Iterable[Shape], member: str) -> int:
    return sum(getattr(row, member) for row in rows)


def _require_sum(member: str, total: float, found: float) -> None:
    if total != found:
        raise ExportRefused("sum_differs", member, expected=total, found=found)


def _require_unique(member: str, key: str, rows: Sequence[Shape]) -> None:
    keys = set()
    for number, row in enumerate(rows):
        value = getattr(row, key)
        if value in keys:
            raise ExportRefused("repeated_row", f"{member}[{number}].{key}", found=value)
        keys.add(value)


def _require_possible_reach(member: str, reach: int, rows: Sequence[DayRow | CampaignRow | CodeRow]) -> None:
    """Make sure that the rows can be parts of the whole.

    Measurement tokens may be in several rows, so their reach has no sum. But each row has at most as many tokens as
    events and as the whole, and each token is in at least one row.
    """
    for number, row in enumerate(rows):
        most = min(row.events, reach)
        if row.estimated_reach > most:
            place = f"{member}[{number}].estimated_reach"
            raise ExportRefused("reach_impossible", place, expected=most, found=row.estimated_reach)
    if (together := _sum(rows, "estimated_reach")) < reach:
        raise ExportRefused("reach_impossible", f"{member}[].estimated_reach", expected=reach, found=together)
