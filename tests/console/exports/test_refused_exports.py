"""Exports that are refused, and that the refusal names what is wrong."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.audience.measured_tenant import MeasuredTenant
from support.audience.report_events import CAMPAIGNS, XR
from support.audience.true_reports import (
    NOW,
    Place,
    list_places,
    make_report,
    make_request,
    name_place,
    remove_value,
    replace_value,
    true_reports,
)

from soundmark.console.exports.documents import (
    export_aggregate,
    export_aggregate_csv,
    export_campaign_performance,
    export_code_performance,
)
from soundmark.console.exports.refusal import ExportRefused
from soundmark.console.exports.report_request import ReportRequest
from soundmark.kit.text.timestamps import parse_timestamp

REQUEST = make_request({})
DIMENSIONS = ("by_day", "by_receiver", "by_frequency", "by_campaign", "by_xr_code", "by_country")


def refuse(report: dict[str, Any], request: ReportRequest = REQUEST) -> ExportRefused:
    """Return why a report is refused, which is the same for both formats."""
    with pytest.raises(ExportRefused) as refused:
        export_aggregate(request, report, NOW)
    with pytest.raises(ExportRefused) as refused_csv:
        export_aggregate_csv(request, report)
    assert str(refused.value) == str(refused_csv.value)
    return refused.value


@given(true_reports(), st.data())
def test_an_unknown_member_is_refused_at_every_depth(
    drawn: tuple[dict[str, str], dict[str, Any]], data: st.DataObject
) -> None:
    report = drawn[1]
    objects = [place for place, value in list_places(report) if isinstance(value, dict)]
    place = (*data.draw(st.sampled_from(objects)), "median")

    refused = refuse(replace_value(report, place, 1))

    assert (refused.reason, refused.member) == ("unknown_member", name_place("report", place))


@given(true_reports(), st.data())
def test_a_missing_member_is_refused_at_every_depth(
    drawn: tuple[dict[str, str], dict[str, Any]], data: st.DataObject
) -> None:
    report = drawn[1]
    members = [place for place, _ in list_places(report) if place and isinstance(place[-1], str)]
    place = data.draw(st.sampled_from(members))

    refused = refuse(remove_value(report, place))

    assert (refused.reason, refused.member) == ("missing_member", name_place("report", place))


def test_a_refusal_is_short_however_long_the_answer_is() -> None:
    refused = refuse({**make_report(), "x" * 1_000_000: 1})

    assert refused.member == "report." + "x" * 193 + "…"


def other_types(value: Any) -> list[Any]:
    """Return values of the JSON types that `value` is not of."""
    every = [None, True, "7", 7, 7.5, [], {}]
    kind = float if isinstance(value, float) else type(value)
    return [other for other in every if not isinstance(other, kind) or isinstance(other, bool)]


@given(true_reports(events_min=1), st.data())
def test_a_member_of_another_type_is_refused_at_every_depth(
    drawn: tuple[dict[str, str], dict[str, Any]], data: st.DataObject
) -> None:
    report = drawn[1]
    places = [(place, value) for place, value in list_places(report) if place]
    place, value = data.draw(st.sampled_from(places))
    other = data.draw(st.sampled_from(other_types(value)))
    # Null is a key of these, and an integer is a number like any other.
    assume(not (other is None and place[-1] in {"campaign_id", "country", "xr_id"} and "filters" not in place))
    assume(not (place == ("average_frequency",) and type(other) is int))

    refused = refuse(replace_value(report, place, other))

    if refused.reason == "differs":
        assert place[0] == "filters"
    elif refused.reason != "sum_differs":
        assert refused.member.startswith(name_place("report", place))


def numbers_of(report: dict[str, Any]) -> list[tuple[Place, int]]:
    """Return the whole numbers of a report that a sum contains."""
    return [
        (place, value)
        for place, value in list_places(report)
        if isinstance(value, int) and (place[-1] != "estimated_reach" or len(place) == 1)
    ]


@given(true_reports(events_min=1), st.data())
def test_a_changed_number_is_refused(drawn: tuple[dict[str, str], dict[str, Any]], data: st.DataObject) -> None:
    """Whichever number of a true report it is, and by however much it changes."""
    report = drawn[1]
    place, value = data.draw(st.sampled_from(numbers_of(report)))
    change = data.draw(st.integers(-3, 1000).filter(bool))

    refused = refuse(replace_value(report, place, value + change))

    assert refused.reason in {"sum_differs", "invalid_member", "repeated_row", "reach_impossible"}


@given(true_reports(), st.sampled_from([-0.0001, 0.0001, 1.0]))
def test_a_changed_average_is_refused(drawn: tuple[dict[str, str], dict[str, Any]], change: float) -> None:
    query, report = drawn
    changed = {**report, "average_frequency": report["average_frequency"] + change}

    refused = refuse(changed, make_request(query))

    assert refused.member == "report.average_frequency"


def test_a_sum_that_does_not_agree_is_named(subtests: pytest.Subtests) -> None:
    for place, member in [
        (("by_day", 0, "events"), "report.by_day[].events"),
        (("by_receiver", 0, "events"), "report.by_receiver[].events"),
        (("by_campaign", 0, "events"), "report.by_campaign[].events"),
        (("by_xr_code", 0, "events"), "report.by_xr_code[].events"),
        (("by_country", 0, "events"), "report.by_country[].events"),
        (("by_frequency", 0, "tokens"), "report.by_frequency[].tokens"),
        (("by_frequency", 0, "frequency"), "report.by_frequency[].frequency"),
        (("integrity_signals", "event_replays"), "report.integrity_signals.by_day[].event_replays"),
        (
            ("integrity_signals", "by_day", 0, "code_token_duplicates"),
            "report.integrity_signals.by_day[].code_token_duplicates",
        ),
        (("integrity_signals", "proof_replays"), "report.integrity_signals.by_day[].proof_replays"),
    ]:
        with subtests.test(place=place, member=member):
            report = make_report()
            (value,) = (value for at, value in list_places(report) if at == place)

            refused = refuse(replace_value(report, place, value + 7))

            assert (refused.reason, refused.member) == ("sum_differs", member)
            assert refused.expected != refused.found


def test_the_total_is_compared_with_every_dimension() -> None:
    """A total that agrees with no dimension is refused by the first, with both numbers."""
    refused = refuse({**make_report(), "events": 6})

    assert (refused.member, refused.expected, refused.found) == ("report.by_day[].events", "6", "5")


@pytest.mark.parametrize("dimension", ["by_day", "by_campaign", "by_xr_code"])
def test_a_row_cannot_reach_more_tokens_than_it_has_events(dimension: str) -> None:
    report = make_report()
    events = report[dimension][0]["events"]

    refused = refuse(replace_value(report, (dimension, 0, "estimated_reach"), events + 1))

    assert (refused.reason, refused.member) == ("reach_impossible", f"report.{dimension}[0].estimated_reach")


@pytest.mark.parametrize("dimension", ["by_day", "by_campaign", "by_xr_code"])
def test_the_rows_together_reach_every_token(dimension: str) -> None:
    report = make_report()
    report[dimension] = [{**row, "estimated_reach": 1} for row in report[dimension]]

    refused = refuse(report)

    assert (refused.reason, refused.member) == ("reach_impossible", f"report.{dimension}[].estimated_reach")


def test_a_dimension_names_each_row_once(subtests: pytest.Subtests) -> None:
    """Split rows would agree in every sum."""
    for dimension in DIMENSIONS:
        with subtests.test(dimension=dimension):
            report = make_report()
            report[dimension].append(dict(report[dimension][-1]))

            refused = refuse(report)

            assert refused.reason == "repeated_row"
            assert refused.member.startswith(f"report.{dimension}[")


def test_a_dimension_of_more_than_ten_thousand_rows_is_refused() -> None:
    report = make_report()
    rows = [{"frequency": number, "tokens": 1} for number in range(1, 10_002)]

    refused = refuse({**report, "by_frequency": rows})

    assert (refused.reason, refused.member) == ("invalid_member", "report.by_frequency")


def test_a_value_that_no_report_has_is_refused(subtests: pytest.Subtests) -> None:
    for place, value in [
        (("by_day", 0, "events"), 0),
        (("events",), -1),
        (("by_day", 0, "day"), "2026-02-30"),
        (("by_day", 0, "day"), "20261122"),
        (("period", "to"), "2026-11-23T18:30:00Z"),
        (("period", "to"), "2026-11-23T19:30:00.000+01:00"),
        (("by_country", 0, "country"), "=1"),
        (("by_xr_code", 0, "xr_id"), '=HYPERLINK("x")'),
        (("by_receiver", 0, "receiver_class"), "toaster"),
        (("average_frequency",), float("nan")),
        (("integrity_signals", "scope"), "filtered"),
        (("mode",), "@SUM(1)"),
    ]:
        with subtests.test(place=place, value=value):
            refused = refuse(replace_value(make_report(), place, value))

            assert (refused.reason, refused.member) == ("invalid_member", name_place("report", place))


OTHER = {
    "campaign_id": ("report.filters.campaign_id", CAMPAIGNS[0]),
    "xr_id": ("report.filters.xr_id", XR[0]),
    "from_at": ("report.period.from", parse_timestamp("2026-11-20T00:00:00Z")),
    "to_at": ("report.period.to", parse_timestamp("2026-11-23T18:00:00Z")),
    "integration_id": ("report.integration_id", "int_" + "z" * 22),
}


def test_an_answer_to_another_request_is_refused(subtests: pytest.Subtests) -> None:
    for filter_name, (member, value) in OTHER.items():
        with subtests.test(filter_name=filter_name):
            request = replace(REQUEST, **{filter_name: value})  # type: ignore[arg-type]  # one of its fields

            refused = refuse(make_report(), request)

            assert (refused.reason, refused.member) == ("differs", member)


@pytest.mark.parametrize(
    ("filters", "member"),
    [
        ({"campaign_id": CAMPAIGNS[0]}, "report.by_campaign[1].campaign_id"),
        ({"xr_id": XR[0]}, "report.by_xr_code[1].xr_id"),
    ],
)
def test_rows_that_the_filter_excludes_are_refused(filters: dict[str, str], member: str) -> None:
    """The answer repeats the filter, and does not apply it."""
    report = make_report()
    report["filters"] = {"campaign_id": None, "xr_id": None, **filters}
    dimension, key = ("by_campaign", "campaign_id") if "campaign_id" in filters else ("by_xr_code", "xr_id")
    report[dimension].sort(key=lambda row: row[key] != filters[key])

    refused = refuse(report, make_request(filters))

    assert (refused.reason, refused.member) == ("differs", member)


async def read_report(measured: MeasuredTenant, **filters: str) -> tuple[ReportRequest, dict[str, Any]]:
    """Return the request of a report that is filtered like this, and its answer."""
    tenant = measured.tenant
    request = ReportRequest(
        organization_id=tenant.organization_id,
        project_id=tenant.project_id,
        integration_id=measured.integration["id"],
        **filters,
    )
    return request, (await measured.report(**filters)).json


async def read_code(measured: MeasuredTenant) -> tuple[ReportRequest, dict[str, Any], dict[str, Any]]:
    xr_id = measured.in_campaign["xr_id"]
    return *(await read_report(measured, xr_id=xr_id)), await measured.tenant.show_code(xr_id)


@pytest.mark.parametrize("member", ["organization_id", "project_id", "audience_integration_id", "xr_id"])
async def test_a_code_from_elsewhere_is_refused(measured: MeasuredTenant, member: str) -> None:
    request, report, code = await read_code(measured)
    prefix = {"organization_id": "org_", "project_id": "prj_", "xr_id": "xr_"}.get(member, "int_")

    with pytest.raises(ExportRefused) as refused:
        export_code_performance(request, report, {**code, member: prefix + "z" * 22}, NOW)

    assert (refused.value.reason, refused.value.member) == ("differs", f"code.{member}")


async def test_a_code_that_is_not_measured_is_refused(measured: MeasuredTenant) -> None:
    request, report, code = await read_code(measured)

    with pytest.raises(ExportRefused) as refused:
        export_code_performance(request, report, {**code, "audience_integration_id": None}, NOW)

    assert (refused.value.member, refused.value.found) == ("code.audience_integration_id", "null")


async def test_a_code_answer_is_closed_at_every_depth(measured: MeasuredTenant) -> None:
    request, report, code = await read_code(measured)
    # The resource of an intent belongs to the organisation, which may put into it what it likes.
    places = [(place, value) for place, value in list_places(code) if "resource" not in place[:-1]]
    wrong = [
        ("missing_member", name_place("code", place), remove_value(code, place))
        for place, _ in places
        if place and isinstance(place[-1], str)
    ]
    wrong += [
        ("unknown_member", name_place("code", (*place, "median")), replace_value(code, (*place, "median"), 1))
        for place, value in places
        if isinstance(value, dict) and place[-1:] != ("resource",)
    ]
    assert len(wrong) > 30
    for reason, member, changed in wrong:
        with pytest.raises(ExportRefused) as refused:
            export_code_performance(request, report, changed, NOW)
        assert (refused.value.reason, refused.value.member) == (reason, member)


async def read_campaign(measured: MeasuredTenant) -> tuple[ReportRequest, dict[str, Any], dict[str, Any]]:
    tenant, campaign_id = measured.tenant, measured.campaign["id"]
    summary = (await tenant.api.get(f"/v1/campaigns/{campaign_id}/summary", params=tenant.query)).json
    return *(await read_report(measured, campaign_id=campaign_id)), summary


@pytest.mark.parametrize("member", ["organization_id", "project_id", "id"])
async def test_a_campaign_from_elsewhere_is_refused(measured: MeasuredTenant, member: str) -> None:
    request, report, summary = await read_campaign(measured)
    prefix = {"organization_id": "org_", "project_id": "prj_", "id": "cmp_"}[member]
    changed = replace_value(summary, ("campaign", member), prefix + "z" * 22)

    with pytest.raises(ExportRefused) as refused:
        export_campaign_performance(request, report, changed, NOW)

    assert (refused.value.reason, refused.value.member) == ("differs", f"summary.campaign.{member}")


@pytest.mark.parametrize("count", ["issued", "active", "expired", "revoked"])
async def test_a_campaign_whose_counts_do_not_agree_is_refused(measured: MeasuredTenant, count: str) -> None:
    request, report, summary = await read_campaign(measured)
    changed = replace_value(summary, ("counts", count), summary["counts"][count] + 1)

    with pytest.raises(ExportRefused) as refused:
        export_campaign_performance(request, report, changed, NOW)

    assert (refused.value.reason, refused.value.member) == ("sum_differs", "summary.counts.issued")


async def test_a_campaign_summary_is_closed_at_every_depth(measured: MeasuredTenant) -> None:
    request, report, summary = await read_campaign(measured)
    for place, value in list_places(summary):
        changes = [("missing_member", place, remove_value(summary, place))] if place else []
        if isinstance(value, dict):
            unknown = (*place, "median")
            changes.append(("unknown_member", unknown, replace_value(summary, unknown, 1)))
        for reason, at, changed in changes:
            with pytest.raises(ExportRefused) as refused:
                export_campaign_performance(request, report, changed, NOW)
            assert (refused.value.reason, refused.value.member) == (reason, name_place("summary", at))


@pytest.mark.parametrize("read", [read_code, read_campaign])
async def test_a_report_that_does_not_agree_is_refused_with_any_subject(measured: MeasuredTenant, read: Any) -> None:
    request, report, subject = await read(measured)
    export = export_code_performance if read is read_code else export_campaign_performance

    with pytest.raises(ExportRefused) as refused:
        export(request, {**report, "events": 99}, subject, NOW)

    assert refused.value.member == "report.by_day[].events"
