"""The three exports of an Audience report.

Source: API v1, "Console exports"; contract, section 10.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from soundmark.console.exports.answer_shapes import CampaignSummary, Code, Report, Shape
from soundmark.console.exports.reconciliation import require_answered, require_reconciled
from soundmark.console.exports.refusal import ExportRefused, Reason, require_equal
from soundmark.console.exports.report_request import ReportRequest
from soundmark.console.exports.report_rows import CSV_COLUMNS, list_filter_rows, list_report_rows
from soundmark.kit.text.timestamps import format_timestamp

AGGREGATE: Final = "svc-audience-aggregate-v1"
CODE_PERFORMANCE: Final = "svc-code-performance-v1"
CAMPAIGN_PERFORMANCE: Final = "svc-campaign-performance-v1"
INTEGRITY_SCOPE: Final = "integration_period"
_CODE_MEMBERS: Final = ("xr_id", "campaign_id", "issuer", "issued_at", "expires_at", "status")

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file to download."""

    name: str
    media_type: str
    content: bytes


def export_aggregate(request: ReportRequest, report: Document, exported_at: datetime) -> ExportFile:
    """Return the report as `svc-audience-aggregate-v1`, in JSON.

    Raises: ExportRefused.
    """
    _read_report(request, report)
    return _write_json(AGGREGATE, request, {"report": report}, exported_at)


def export_aggregate_csv(request: ReportRequest, report: Document) -> ExportFile:
    """Return the report as `svc-audience-aggregate-v1`, in CSV: the filters, then the rows of the API's own CSV.

    Raises: ExportRefused.
    """
    numbers = _read_report(request, report)
    rows = [CSV_COLUMNS, *list_filter_rows(_make_filters(request)), *list_report_rows(numbers)]
    return ExportFile(f"{request.integration_id}.{AGGREGATE}.csv", "text/csv", write_csv(rows))


def export_code_performance(
    request: ReportRequest, report: Document, code: Document, exported_at: datetime
) -> ExportFile:
    """Return the report of one Code as `svc-code-performance-v1`; `code` is the Code's detail.

    Raises: ExportRefused.
    """
    assert request.xr_id is not None, "the report is filtered by the Code"
    _read_report(request, report)
    _require_code(request, read_answer(Code, code, "code"))
    subject = {"code": {member: code[member] for member in _CODE_MEMBERS}}
    return _write_json(CODE_PERFORMANCE, request, {**subject, "report": report}, exported_at)


def export_campaign_performance(
    request: ReportRequest, report: Document, summary: Document, exported_at: datetime
) -> ExportFile:
    """Return the report of one campaign as `svc-campaign-performance-v1`; `summary` is the campaign's.

    Raises: ExportRefused.
    """
    assert request.campaign_id is not None, "the report is filtered by the campaign"
    _read_report(request, report)
    _require_campaign(request, read_answer(CampaignSummary, summary, "summary"))
    return _write_json(CAMPAIGN_PERFORMANCE, request, {"campaign": summary, "report": report}, exported_at)


def _read_report(request: ReportRequest, document: Document) -> Report:
    report = read_answer(Report, document, "report")
    require_answered(report, request)
    require_reconciled(report)
    return report


def _require_code(request: ReportRequest, code: Code) -> None:
    require_equal("code.xr_id", request.xr_id, code.xr_id)
    require_equal("code.organization_id", request.organization_id, code.organization_id)
    require_equal("code.project_id", request.project_id, code.project_id)
    require_equal("code.audience_integration_id", request.integration_id, code.audience_integration_id)


def _require_campaign(request: ReportRequest, summary: CampaignSummary) -> None:
    require_equal("summary.campaign.id", request.campaign_id, summary.campaign.id)
    require_equal("summary.campaign.organization_id", request.organization_id, summary.campaign.organization_id)
    require_equal("summary.campaign.project_id", request.project_id, summary.campaign.project_id)
    counts = summary.counts
    counted = counts.active + counts.expired + counts.revoked
    if counts.issued != counted:
        raise ExportRefused("sum_differs", "summary.counts.issued", expected=counts.issued, found=counted)


def _make_filters(request: ReportRequest) -> dict[str, str | None]:
    return {
        "campaign_id": request.campaign_id,
        "xr_id": request.xr_id,
        "from": None if request.from_at is None else format_timestamp(request.from_at),
        "to": None if request.to_at is None else format_timestamp(request.to_at),
        "integrity_scope": INTEGRITY_SCOPE,
    }


def _write_json(
    format_name: str, request: ReportRequest, content: Mapping[str, Any], exported_at: datetime
) -> ExportFile:
    """Return the file; `content` is the API's answers, member by member."""
    document = {
        "format": format_name,
        "exported_at": format_timestamp(exported_at),
        "organization_id": request.organization_id,
        "project_id": request.project_id,
        "integration_id": request.integration_id,
        "filters": _make_filters(request),
        **content,
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    return ExportFile(f"{request.integration_id}.{format_name}.json", "application/json", f"{text}\n".encode())


# A spreadsheet takes a cell for a formula if it begins with one of these.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")


def write_csv(rows: Iterable[Sequence[str]]) -> bytes:
    """Return rows as CSV (RFC 4180, UTF-8); an apostrophe marks as text what could be taken for a formula.

    Source: contract, section 10.
    """
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows([guard_cell(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def guard_cell(cell: str) -> str:
    """Return the cell, with a leading apostrophe if it could be taken for a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA_STARTS) else cell


S = TypeVar("S", bound=Shape)

_REASONS: Final[Mapping[str, Reason]] = {"extra_forbidden": "unknown_member", "missing": "missing_member"}


def read_answer(shape: type[S], document: Mapping[str, Any], name: str) -> S:
    """Return the answer in its shape; `name` says in a refusal which answer it is.

    Raises: ExportRefused for the first member that is unknown, missing or not as the shape has it.
    """
    try:
        return shape.model_validate(dict(document))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise ExportRefused(_REASONS.get(first["type"], "invalid_member"), _name_place(name, first["loc"])) from None


def _name_place(name: str, path: tuple[str | int, ...]) -> str:
    """Return a place such as `report.by_day[3].events`."""
    return name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
