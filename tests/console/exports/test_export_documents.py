"""The exports of a true report: their content, their names, and that they are made from the API's answers alone."""

import csv
import io
import json
from datetime import datetime
from typing import Any

from hypothesis import given
from support.audience.measured_tenant import MeasuredTenant
from support.audience.recorded_events import cells
from support.audience.true_reports import (
    INTEGRATION,
    NOW,
    ORGANIZATION,
    PROJECT,
    make_report,
    make_request,
    true_reports,
)

from soundmark.console.exports.documents import (
    ExportFile,
    export_aggregate,
    export_aggregate_csv,
    export_campaign_performance,
    export_code_performance,
)
from soundmark.console.exports.report_request import ReportRequest


def request_of(measured: MeasuredTenant, **filters: Any) -> ReportRequest:
    tenant = measured.tenant
    return ReportRequest(
        organization_id=tenant.organization_id,
        project_id=tenant.project_id,
        integration_id=measured.integration["id"],
        **filters,
    )


def read(file: ExportFile) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(file.content)
    return document


def read_rows(file: ExportFile) -> list[tuple[str, ...]]:
    return cells(file.content)


@given(true_reports())
def test_a_true_report_is_exported_member_by_member(drawn: tuple[dict[str, str], dict[str, Any]]) -> None:
    query, report = drawn

    document = read(export_aggregate(make_request(query), report, NOW))

    assert document == {
        "format": "svc-audience-aggregate-v1",
        "exported_at": "2026-11-23T18:30:00.000Z",
        "organization_id": ORGANIZATION,
        "project_id": PROJECT,
        "integration_id": INTEGRATION["id"],
        "filters": {
            "campaign_id": query.get("campaign_id"),
            "xr_id": query.get("xr_id"),
            "from": query.get("from"),
            "to": query.get("to"),
            "integrity_scope": "integration_period",
        },
        "report": report,
    }
    assert json.dumps(document["report"]) == json.dumps(report), "the numbers are written as the API writes them"


@given(true_reports())
def test_the_csv_of_a_true_report_has_every_number(drawn: tuple[dict[str, str], dict[str, Any]]) -> None:
    query, report = drawn

    rows = read_rows(export_aggregate_csv(make_request(query), report))

    assert rows[:5] == [
        ("filters", "", "campaign_id", query.get("campaign_id", "")),
        ("filters", "", "xr_id", query.get("xr_id", "")),
        ("filters", "", "from", query.get("from", "")),
        ("filters", "", "to", query.get("to", "")),
        ("filters", "", "integrity_scope", "integration_period"),
    ]
    days = [row for row in rows if row[0] == "by_day" and row[2] == "events"]
    assert days == [("by_day", row["day"], "events", str(row["events"])) for row in report["by_day"]]
    assert ("total", "", "average_frequency", f"{report['average_frequency']:.4f}") in rows
    assert all(len(row) == 4 for row in rows)


def test_the_files_are_named_by_integration_and_format() -> None:
    request, report = make_request({}), make_report()

    names = [export_aggregate(request, report, NOW).name, export_aggregate_csv(request, report).name]

    assert names == [f"{INTEGRATION['id']}.svc-audience-aggregate-v1.{suffix}" for suffix in ("json", "csv")]


async def test_the_csv_has_the_rows_of_the_apis_own(measured: MeasuredTenant) -> None:
    """Of a real report: the same moment twice, as JSON and as CSV."""
    measured.tenant.api.clock.freeze()
    report = (await measured.report()).json
    own = (await measured.report(accept="text/csv")).body

    file = export_aggregate_csv(request_of(measured), report)

    rows = list(csv.reader(io.StringIO(file.content.decode(), newline="")))
    assert report["events"] == 3
    assert rows[0] == ["dimension", "key", "metric", "value"]
    assert [row[0] for row in rows[1:6]] == ["filters"] * 5
    header = b"dimension,key,metric,value\r\n"
    assert file.content.removeprefix(header).endswith(own.removeprefix(header)), "byte for byte"
    assert file.media_type == "text/csv"


async def test_the_performance_of_a_code_is_exported(measured: MeasuredTenant) -> None:
    xr_id, now = measured.in_campaign["xr_id"], measured.tenant.api.clock.freeze()
    code = (await measured.tenant.api.get(f"/v1/codes/{xr_id}", params=measured.tenant.query)).json
    report = (await measured.report(xr_id=xr_id)).json

    file = export_code_performance(request_of(measured, xr_id=xr_id), report, code, now)

    document = read(file)
    assert document["format"] == "svc-code-performance-v1"
    assert document["report"] == report
    assert document["filters"]["xr_id"] == xr_id
    assert document["code"] == {
        "xr_id": xr_id,
        "campaign_id": measured.campaign["id"],
        "issuer": "Radio Nordlicht",
        "issued_at": code["issued_at"],
        "expires_at": code["expires_at"],
        "status": "active",
    }
    assert file.name == f"{measured.integration['id']}.svc-code-performance-v1.json"


async def test_the_performance_of_a_campaign_is_exported(measured: MeasuredTenant) -> None:
    campaign_id, now = measured.campaign["id"], measured.tenant.api.clock.freeze()
    tenant = measured.tenant
    summary = (await tenant.api.get(f"/v1/campaigns/{campaign_id}/summary", params=tenant.query)).json
    from_at = datetime.fromisoformat("2026-01-01T00:00:00Z")
    report = (await measured.report(campaign_id=campaign_id, **{"from": "2026-01-01T00:00:00Z"})).json

    file = export_campaign_performance(
        request_of(measured, campaign_id=campaign_id, from_at=from_at), report, summary, now
    )

    document = read(file)
    assert document["format"] == "svc-campaign-performance-v1"
    assert (document["report"], document["campaign"]) == (report, summary)
    assert document["filters"]["from"] == "2026-01-01T00:00:00.000Z"
    assert file.name == f"{measured.integration['id']}.svc-campaign-performance-v1.json"
