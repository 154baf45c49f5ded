"""Exports as downloads, and the page of a refused one."""

import json
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.audience.measured_tenant import MeasuredTenant, measure_tenant
from support.audience.recorded_events import cells
from support.audience.report_pages import export_path, report_path
from support.console.client import ConsoleClient
from support.console.faults import audience_failing
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp


def links_of(page: Any) -> dict[str, str]:
    """Return the links to exports, by the last part of their paths."""
    hrefs = [str(link.get("href")) for link in page.find_all(".//section[@aria-labelledby='exports']//a")]
    return {path.rpartition("/")[2]: href for href in hrefs if (path := urlsplit(href).path)}


async def test_the_links_of_a_report_lead_to_its_numbers(
    operator: ConsoleClient, measured: MeasuredTenant, clock: FakeClock
) -> None:
    """The period is exact, so that an event of the next minute is in neither."""
    query = {"campaign_id": measured.campaign["id"], "xr_id": measured.in_campaign["xr_id"]}
    links = links_of(await operator.get(report_path(measured, **query)))
    to = parse_qs(urlsplit(links["aggregate.json"]).query)["to"]
    assert to == [format_timestamp(clock.now())]
    clock.advance(seconds=60)

    answers = {name: await operator.get(href) for name, href in links.items()}

    assert {name: (answer.status, answer.headers["content-disposition"]) for name, answer in answers.items()} == {
        f"{name}": (200, f'attachment; filename="{measured.integration["id"]}.{file_name}"')
        for name, file_name in [
            ("aggregate.json", "svc-audience-aggregate-v1.json"),
            ("aggregate.csv", "svc-audience-aggregate-v1.csv"),
            ("code-performance.json", "svc-code-performance-v1.json"),
            ("campaign-performance.json", "svc-campaign-performance-v1.json"),
        ]
    }
    documents = {name: json.loads(answer.response.content) for name, answer in answers.items() if ".json" in name}
    assert {document["report"]["period"]["to"] for document in documents.values()} == set(to)
    assert {document["filters"]["xr_id"] for document in documents.values()} == {query["xr_id"]}
    assert {document["exported_at"] for document in documents.values()} == {format_timestamp(clock.now())}
    assert documents["code-performance.json"]["code"]["xr_id"] == query["xr_id"]
    assert documents["campaign-performance.json"]["campaign"]["campaign"]["id"] == query["campaign_id"]
    rows = cells(answers["aggregate.csv"].response.content)
    assert rows[:2] == [("filters", "", name, value) for name, value in query.items()]
    assert {answer.headers["cache-control"] for answer in answers.values()} == {"no-store"}


async def test_exports_that_need_a_filter_are_not_offered_without_it(
    operator: ConsoleClient, measured: MeasuredTenant
) -> None:
    page = await operator.get(report_path(measured))

    assert set(links_of(page)) == {"aggregate.json", "aggregate.csv"}
    assert "Choose a Code first." in page.text
    for export, reason in (
        ("code-performance.json", "Code: Choose a Code first."),
        ("campaign-performance.json", "Campaign: Choose a campaign first."),
    ):
        refused = await operator.get(export_path(measured, export))
        assert (refused.status, refused.trouble) == (422, "validation_failed")
        assert reason in refused.text


async def test_an_unknown_export_is_a_page_that_does_not_exist(
    operator: ConsoleClient, measured: MeasuredTenant
) -> None:
    assert (await operator.get(export_path(measured, "everything.xlsx"))).status == 404


CHANGES = {
    "an unknown member": (
        {"by_country": [{"country": None, "events": 3, "city": "<b>Tunis</b>"}]},
        "by_country[0].city",
    ),
    "a sum": ({"events": 4}, "report.by_day[].events should be 4, and is 3"),
    "the average": ({"average_frequency": 1.4999}, "report.average_frequency should be 1.5, and is 1.4999"),
    "another filter": ({"filters": {"campaign_id": None, "xr_id": "xr_" + "z" * 22}}, "report.filters.xr_id"),
    "another integration": ({"integration_id": "int_" + "z" * 22}, "report.integration_id should be int_"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("export", ["aggregate.json", "aggregate.csv"])
async def test_a_report_that_cannot_be_exported_is_a_page_with_the_reason(
    operator: ConsoleClient, measured: MeasuredTenant, change: str, export: str
) -> None:
    changes, reason = CHANGES[change]
    operator.core.alter(f"GET {measured.path}", lambda report: {**report, **changes})

    page = await operator.get(export_path(measured, export, **{"from": "2026-01-01"}))

    assert (page.status, page.trouble) == (502, "export_refused")
    assert "content-disposition" not in page.headers
    assert reason in page.text
    assert page.find_all(".//b") == [], "names of members are text"
    back = page.find(".//main/p/a").get("href")
    assert back == report_path(measured, **{"from": "2026-01-01"})


async def test_the_way_back_from_a_refused_export_keeps_the_period(
    operator: ConsoleClient, measured: MeasuredTenant, clock: FakeClock
) -> None:
    """The link names exact times, and the fields of the page take days."""
    today = clock.now().date()
    period = {"from": (today - timedelta(days=6)).isoformat(), "to": today.isoformat()}
    links = links_of(await operator.get(report_path(measured, **period)))
    operator.core.alter(f"GET {measured.path}", lambda report: {**report, "events": 4})
    refused = await operator.get(links["aggregate.json"])

    page = await operator.get(str(refused.find(".//main/p/a").get("href")))

    assert {name: page.value(name) for name in period} == period
    assert page.find(".//nav[@class='tabs']//a[@aria-current='page']").text == "7 days"


@pytest.mark.parametrize("member", ["by_country", "filters"])
async def test_a_missing_member_is_named(operator: ConsoleClient, measured: MeasuredTenant, member: str) -> None:
    """One that the client itself needs, and one that only the export knows."""
    operator.core.alter(
        f"GET {measured.path}",
        lambda report: {name: value for name, value in report.items() if name != member},
    )

    page = await operator.get(export_path(measured, "aggregate.json"))

    assert (page.status, page.trouble) == (502, "export_refused")
    assert f"{member}." in page.find(".//section[@id='trouble']").findtext("p", "")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda report: {name: value for name, value in report.items() if name != "by_country"}, "manque"),
        (lambda report: {**report, "by_country": 7}, "n’admet pas"),
    ],
)
async def test_what_the_client_cannot_read_is_told_in_french(
    operator: ConsoleClient, measured: MeasuredTenant, clock: FakeClock, change: Any, expected: str
) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())
    french.core.alter(f"GET {measured.path}", change)

    page = await french.get(export_path(measured, "aggregate.json"))

    told = page.find(".//section[@id='trouble']").findtext("p", "")
    assert expected in told
    assert "by_country" in told
    assert "service" not in told


async def test_a_code_of_another_integration_is_refused(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    operator.core.alter(
        f"GET /v1/codes/{measured.alone['xr_id']}", lambda code: {**code, "audience_integration_id": "int_" + "z" * 22}
    )

    page = await operator.get(export_path(measured, "code-performance.json", xr_id=measured.alone["xr_id"]))

    assert (page.status, page.trouble) == (502, "export_refused")
    assert "code.audience_integration_id" in page.text


async def test_a_campaign_whose_counts_do_not_agree_is_refused(
    operator: ConsoleClient, measured: MeasuredTenant
) -> None:
    operator.core.alter(
        f"GET /v1/campaigns/{measured.campaign['id']}/summary",
        lambda summary: {**summary, "counts": {**summary["counts"], "issued": 9}},
    )

    page = await operator.get(export_path(measured, "campaign-performance.json", campaign_id=measured.campaign["id"]))

    assert (page.status, page.trouble) == (502, "export_refused")
    assert "summary.counts.issued should be 9, and is 1" in page.text


async def test_an_export_while_audience_fails_can_be_tried_again(
    operator: ConsoleClient, measured: MeasuredTenant, database_url: Secret, clock: FakeClock
) -> None:
    path = export_path(measured, "aggregate.csv", **{"from": "2026-01-01"})

    async with audience_failing(operator, database_url, clock, "down"):
        page = await operator.get(path)

    assert (page.status, page.trouble) == (503, "audience_unavailable")
    assert page.find(".//a[@class='button']").get("href") == path


async def test_only_members_who_may_read_the_audience_export(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock, beside_core_url: Secret
) -> None:
    measured = await measure_tenant(await people.tenant_of("ada"), beside_core_url)
    await measured.tenant.make_member(rival, "eve", "billing")

    page = await visitors.sign_in_as(people, "eve", clock.now()).get(export_path(measured, "aggregate.json"))

    assert (page.status, page.trouble) == (403, "forbidden")


@pytest.mark.parametrize("dots", [".", ".."])
async def test_a_filter_that_leads_upwards_is_no_filter(
    operator: ConsoleClient, measured: MeasuredTenant, dots: str
) -> None:
    """The id would become a part of the path of a call to Core."""
    for export, name in (("code-performance.json", "xr_id"), ("campaign-performance.json", "campaign_id")):
        page = await operator.get(export_path(measured, export, **{name: dots}))
        assert (page.status, page.trouble) == (404, "page_not_found")
