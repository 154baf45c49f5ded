"""The page of a report: its numbers, charts and filters."""

import asyncio
import re
from datetime import timedelta

import pytest
from support.audience.measured_tenant import MeasuredTenant, measure_tenant
from support.audience.recorded_events import RecordedEvent, store_events
from support.audience.report_pages import report_path, rows_of
from support.console.client import ConsoleClient, PageAnswer
from support.console.faults import audience_failing
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.console import lookups, parts
from soundmark.console.language import get_language
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp


def read_totals(page: PageAnswer) -> list[str | None]:
    return [each.text for each in page.find_all(".//dl[@class='tiles']//dd[@class='value']")]


def read_notes(page: PageAnswer) -> list[str | None]:
    return [each.text for each in page.find_all(".//dl[@class='tiles']//dd[@class='note']")]


def write_day(day: str) -> str:
    return get_language("en").iso_day(day)


async def test_a_report_shows_every_dimension(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    report = (await measured.report()).json

    page = await operator.get(report_path(measured))

    assert page.status == 200
    assert read_totals(page) == ["3", "2", "1.5"]
    assert rows_of(page, "by_day") == [
        [write_day(row["day"]), "1" if index == 0 else "2", str(row["estimated_reach"])]
        for index, row in enumerate(report["by_day"])
    ]
    assert rows_of(page, "by_receiver") == [["Phone", "2"], ["Kiosk", "1"]]
    assert rows_of(page, "by_frequency") == [["1", "1"], ["2", "1"]]
    assert rows_of(page, "by_campaign") == [["Tonight", "2", "2"], ["without a campaign", "1", "1"]]
    assert page.find(".//section[@aria-labelledby='by_campaign']//th/a/bdi").text == "Tonight"
    assert rows_of(page, "by_xr_code") == [
        [f"example.org/ä{measured.in_campaign['xr_id']}", "2", "2"],
        [f"example.org/ä{measured.alone['xr_id']}", "1", "1"],
    ]
    assert rows_of(page, "by_country") == [["Tunisia", "2"], ["not given", "1"]]


async def test_integrity_signals_say_their_scope(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    page = await operator.get(report_path(measured, xr_id=measured.alone["xr_id"]))

    section = page.find(".//section[@aria-labelledby='integrity']")
    assert "They cover the whole integration and whole UTC days" in "".join(section.itertext())
    (*_, total) = section.findall(".//tbody/tr")
    assert [cell.text for cell in total] == ["Total", "3", "2", "1"]


async def test_every_chart_has_a_title_a_description_and_a_table(
    operator: ConsoleClient, measured: MeasuredTenant
) -> None:
    page = await operator.get(report_path(measured))

    charts = page.find_all(".//figure/{*}svg")
    assert len(charts) == 3
    ids = {element.get("id") for element in page.find_all(".//*[@id]")}
    for chart in charts:
        assert chart.get("role") == "img"
        assert (chart.findtext("{*}title"), bool(chart.findtext("{*}desc"))) != ("", False)
        assert set(str(chart.get("aria-labelledby")).split()) <= ids
        assert chart.findall("{*}path"), "it has bars"
    hidden = [svg for svg in page.find_all(".//td/{*}svg") if svg.get("aria-hidden") != "true"]
    assert hidden == [], "the bars of tables repeat their numbers"


async def test_each_table_of_a_chart_is_folded_behind_it_and_every_axis_has_a_title(
    operator: ConsoleClient, measured: MeasuredTenant
) -> None:
    page = await operator.get(report_path(measured))

    for dimension in ("by_day", "by_frequency", "integrity"):
        section = page.find(f".//section[@aria-labelledby='{dimension}']")
        assert section.find("details[@class='behind']//table") is not None
        assert len(section.findall("figure//{*}text[@class='label axis-title']")) == 2
    order = [str(each.get("aria-labelledby")) for each in page.find_all(".//main/section")]
    assert order[-1] == "exports"
    shown = "".join(page.find(".//main").itertext())
    assert shown.count("UTC") == 1 + page.find(".//section[@aria-labelledby='integrity']/p").text.count("UTC")


async def test_a_row_filters_the_page_where_the_service_has_the_filter(
    operator: ConsoleClient, measured: MeasuredTenant
) -> None:
    page = await operator.get(report_path(measured))
    day = (await measured.report()).json["by_day"][-1]["day"]

    links = {
        dimension: [str(a.get("href")) for a in page.find_all(f".//section[@aria-labelledby='{dimension}']//th//a")]
        for dimension in ("by_day", "by_campaign", "by_xr_code")
    }

    assert links["by_day"][-1] == report_path(measured, **{"from": day, "to": day})
    assert links["by_campaign"] == [report_path(measured, campaign_id=measured.campaign["id"])]
    assert report_path(measured, xr_id=measured.alone["xr_id"]) in links["by_xr_code"]


async def test_a_preset_keeps_the_other_filters_and_is_marked(
    operator: ConsoleClient, measured: MeasuredTenant
) -> None:
    today = measured.tenant.api.clock.now().date()
    xr_id = measured.in_campaign["xr_id"]

    page = await operator.get(report_path(measured, xr_id=xr_id))
    [week, month, everything] = page.find_all(".//nav[@class='tabs']//a")
    chosen = await operator.get(str(week.get("href")))

    assert everything.get("aria-current") == "page"
    assert month.get("aria-current") is None
    assert (chosen.value("from"), chosen.value("to")) == ((today - timedelta(days=6)).isoformat(), today.isoformat())
    assert chosen.value("xr_id") == xr_id
    assert [a.text for a in chosen.find_all(".//nav[@class='tabs']//a[@aria-current]")] == ["7 days"]


async def test_totals_are_compared_with_the_period_before_as_far_as_it_is_kept(
    operator: ConsoleClient, measured: MeasuredTenant, beside_core_url: Secret
) -> None:
    now = measured.tenant.api.clock.now()
    old = [RecordedEvent(now - timedelta(days=2, hours=1), 500 + n, measured.alone["xr_id"]) for n in range(6)]
    await asyncio.to_thread(store_events, beside_core_url, measured.integration["id"], old)

    def since(hours: int) -> str:
        return report_path(measured, **{"from": format_timestamp(now - timedelta(hours=hours))})

    compared = await operator.get(since(36))
    empty_before = await operator.get(since(24 * 4))
    deleted_before = await operator.get(since(24 * 9))
    whole = await operator.get(report_path(measured))

    assert read_notes(compared)[0] == "-50%, from 6 in the previous period"
    assert read_notes(empty_before)[0] == "none in the previous period"
    for page in (deleted_before, whole):
        assert read_notes(page) == ["events per measurement token"]


async def test_a_report_says_what_is_deleted_and_that_nothing_more_is_measured(
    operator: ConsoleClient, measured: MeasuredTenant
) -> None:
    tenant, integration = measured.tenant, measured.integration["id"]
    first_kept = tenant.api.clock.now().date() - timedelta(days=2)
    integrations = report_path(measured).partition("?")[0].removesuffix("/report")
    wider = report_path(measured, **{"from": (first_kept - timedelta(days=1)).isoformat()})
    assert not (await operator.get(wider)).find_all(".//main/p[@class='notice']")
    changed = await operator.submit(integrations, {"retention_days": "2", "confirmed": "yes"})
    assert changed.status == 303, integration
    await operator.follow(await operator.submit(f"{integrations}/revoke"))

    notices = [
        [str(each.text) for each in (await operator.get(path)).find_all(".//main/p[@class='notice']")]
        for path in (wider, report_path(measured, **{"from": first_kept.isoformat()}))
    ]

    revoked = "This integration is revoked: it accepts no events. Its reports stay available until its retention ends."
    deleted = f"The numbers begin on {get_language('en').day(first_kept)}: earlier events are deleted, because their"
    assert notices == [[revoked, f"{deleted} retention is over."], [revoked]]


async def test_a_report_does_without_what_stands_beside_it(
    operator: ConsoleClient, measured: MeasuredTenant, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """The names of campaigns and the comparison: a call that fails or is late, or a list that is too long."""
    path = report_path(measured, **{"from": "2026-01-01"})
    campaigns, integrations = "GET /v1/campaigns", "GET /v1/audience/integrations"
    await measured.tenant.make_integration()
    await operator.get(path)  # The names of the tenant are known from now on.
    for name, fail in (
        ("no campaigns", lambda: operator.core.refuse(campaigns, 503, "database_unavailable")),
        ("late campaigns", lambda: operator.core.stall(campaigns)),
        ("late integration", lambda: operator.core.stall(integrations)),
        ("integration out of reach", lambda: monkeypatch.setattr(lookups, "LISTED_MAX", 0)),
    ):
        with subtests.test(name), monkeypatch.context() as patched:
            patched.setattr(parts, "_LATE_S", 0.5)
            fail()
            async with asyncio.timeout(5):
                page = await operator.get(path)
            operator.core.recover()
            assert (page.status, page.trouble, read_totals(page)) == (200, None, ["3", "2", "1.5"])
            is_said = "Some choices cannot be shown at the moment." in page.text
            assert is_said is ("campaigns" in name)


async def test_no_page_has_inline_styles_or_scripts(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    tenant = measured.tenant
    legacy = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/legacy-report"
    for path in (report_path(measured), legacy, f"/organizations/{tenant.organization_id}/usage"):
        page = await operator.get(path)
        assert page.status == 200
        elements = list(page.tree.iter())
        assert [element.tag for element in elements if element.get("style") is not None] == []
        assert [element for element in elements if any(name.startswith("on") for name in element.attrib)] == []
        assert [element.text for element in elements if element.tag in {"style", "script"} and element.text] == []


async def test_filters_are_applied_and_stay_on_the_page(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    today = measured.tenant.api.clock.now().date()
    filters = {
        "from": (today - timedelta(days=1)).isoformat(),
        "to": today.isoformat(),
        "campaign_id": measured.campaign["id"],
        "xr_id": measured.in_campaign["xr_id"],
    }

    page = await operator.get(report_path(measured, **filters))

    assert read_totals(page)[0] == "2"
    assert {name: page.value(name) for name in filters} == filters


async def test_the_last_day_of_the_period_is_included(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    day = (await measured.report()).json["by_day"][-1]["day"]

    page = await operator.get(report_path(measured, **{"from": day, "to": day}))

    assert [row[0] for row in rows_of(page, "by_day")] == [write_day(day)]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "yesterday"}, "from"),
        ({"to": "9999-12-31"}, "to"),
        ({"from": "2026-11-22", "to": "2026-11-20"}, "from"),
        ({"from": "2026-11-20T00:00:00"}, "from"),
    ],
)
async def test_a_malformed_period_is_shown_again_with_the_reason(
    operator: ConsoleClient, measured: MeasuredTenant, query: dict[str, str], field: str
) -> None:
    page = await operator.get(report_path(measured, **query))

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.find(f".//input[@name='{field}'][@aria-invalid='true']") is not None
    assert {name: page.value(name) for name in query} == query


async def test_a_refused_filter_leaves_every_campaign_to_choose(
    operator: ConsoleClient, measured: MeasuredTenant
) -> None:
    page = await operator.get(report_path(measured, to="yesterday"))

    assert page.status == 422
    assert "Tonight" in [each.text for each in page.find_all(".//select[@name='campaign_id']/option")]


@pytest.mark.parametrize(
    ("filter_name", "value", "code"),
    [
        ("campaign_id", "cmp_" + "u" * 22, "campaign_not_found"),
        ("xr_id", "xr_" + "u" * 22, "code_not_found"),
    ],
)
async def test_an_unknown_filter_is_named(
    operator: ConsoleClient, measured: MeasuredTenant, filter_name: str, value: str, code: str
) -> None:
    page = await operator.get(report_path(measured, **{filter_name: value}))

    assert (page.status, page.trouble) == (404, code)
    assert page.value(filter_name) == value


async def test_an_empty_report_says_so(operator: ConsoleClient, tenant: Tenant, beside_core_url: Secret) -> None:
    measured = await measure_tenant(tenant, beside_core_url)

    page = await operator.get(report_path(measured, **{"from": "2020-01-01", "to": "2020-01-31"}))

    assert page.status == 200
    assert "No events in this period." in page.text
    assert "No integrity signals in this period." in page.text
    assert page.find_all(".//figure/{*}svg") == []


async def test_hostile_names_are_text(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
    renamed = await measured.tenant.api.patch(
        f"/v1/campaigns/{measured.campaign['id']}", params=measured.tenant.query, json={"name": hostile}
    )
    assert renamed.status == 200

    page = await operator.get(report_path(measured, campaign_id=measured.campaign["id"]))

    assert rows_of(page, "by_campaign")[0][0] == hostile
    assert hostile in [option.text for option in page.find_all(".//option")]
    assert page.find_all(".//img") == []
    assert len(page.find_all(".//script")) == 2


async def test_hostile_keys_and_parameters_are_text(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    hostile = "<svg onload=alert(1)>"
    operator.core.alter(
        f"GET {measured.path}",
        lambda report: {**report, "by_country": [{"country": hostile, "events": 3}]},
    )

    page = await operator.get(report_path(measured, all=hostile, **{"from": "2026-01-01"}))
    refused = await operator.get(report_path(measured, xr_id=hostile))

    assert rows_of(page, "by_country") == [[hostile, "3"]]
    assert refused.value("xr_id") == hostile
    for each in (page, refused):
        assert [svg for svg in each.find_all(".//{*}svg") if svg.get("onload")] == []


async def test_a_report_of_ten_thousand_codes_shows_the_first_fifty(
    operator: ConsoleClient, measured: MeasuredTenant, beside_core_url: Secret
) -> None:
    at = measured.tenant.api.clock.now() - timedelta(hours=1)
    events = [RecordedEvent(at, 7, f"xr_{number:022d}") for number in range(9_998)]
    await asyncio.to_thread(store_events, beside_core_url, measured.integration["id"], events)

    page = await operator.get(report_path(measured))
    everything = await operator.get(report_path(measured, all="by_xr_code"))

    assert len(rows_of(page, "by_xr_code")) == 50
    assert "The first 50 of 10,000." in page.text
    assert len(page.response.content) < 100_000
    link = page.find(".//section[@aria-labelledby='by_xr_code']/p/a")
    assert (link.text, link.get("href")) == ("Show all", report_path(measured, all="by_xr_code") + "#by_xr_code")
    assert len(set(re.findall(r"xr_[A-Za-z0-9_-]{22}", everything.html))) == 10_000  # A strict parser takes seconds.


async def test_a_report_that_is_too_large_says_so_and_keeps_the_filters(
    operator: ConsoleClient, measured: MeasuredTenant, beside_core_url: Secret
) -> None:
    at = measured.tenant.api.clock.now() - timedelta(hours=1)
    events = [RecordedEvent(at, 7, f"xr_{number:022d}") for number in range(10_000)]
    await asyncio.to_thread(store_events, beside_core_url, measured.integration["id"], events)

    page = await operator.get(report_path(measured, **{"from": "2026-01-01"}))

    assert (page.status, page.trouble) == (422, "report_too_large")
    assert "too many entries" in page.find(".//section[@id='trouble']").findtext("h2", "")
    assert page.value("from") == "2026-01-01"


@pytest.mark.parametrize("fault", ["down", "broken JSON"])
async def test_an_audience_that_fails_keeps_the_filters(
    operator: ConsoleClient, measured: MeasuredTenant, database_url: Secret, clock: FakeClock, fault: str
) -> None:
    path = report_path(measured, **{"from": "2026-01-01", "xr_id": measured.alone["xr_id"]})

    async with audience_failing(operator, database_url, clock, fault):
        page = await operator.get(path)

    assert (page.status, page.trouble) == (503, "audience_unavailable")
    assert (page.value("from"), page.value("xr_id")) == ("2026-01-01", measured.alone["xr_id"])


async def test_an_answer_with_an_impossible_day_is_no_defect(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    operator.core.alter(
        f"GET {measured.path}",
        lambda report: {**report, "by_day": [{"day": "today", "events": 3, "estimated_reach": 2}]},
    )

    page = await operator.get(report_path(measured))

    assert (page.status, page.trouble) == (503, "core_unreadable")


async def test_only_members_who_may_read_the_audience_see_reports(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock, beside_core_url: Secret
) -> None:
    measured = await measure_tenant(await people.tenant_of("ada"), beside_core_url)
    for name, role in (("bob", "member"), ("eve", "billing")):
        await measured.tenant.make_member(rival, name, role)

    answers = {}
    for name in ("bob", "eve", "mallory"):
        browser = visitors.other().sign_in_as(people, name, clock.now())
        answers[name] = await browser.get(report_path(measured))

    assert {name: (page.status, page.trouble) for name, page in answers.items()} == {
        "bob": (200, None),
        "eve": (403, "forbidden"),
        "mallory": (404, "organization_not_found"),
    }


async def test_a_report_is_written_in_french_too(
    operator: ConsoleClient, measured: MeasuredTenant, clock: FakeClock
) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    page = await french.get(report_path(measured))

    assert page.find(".//html") is not None if page.tree.tag != "html" else page.tree.get("lang") == "fr"
    assert read_totals(page)[2] == "1,5"
    assert rows_of(page, "by_country")[0] == ["Tunisie", "2"]
    assert "Signaux d’intégrité" in page.text


async def test_the_link_to_the_integration_holds_no_button(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    """A script adds one to every id that is marked for it; inside a link, a click on it would leave the page."""
    page = await operator.get(report_path(measured))

    path = report_path(measured).removesuffix("/report")
    [link] = [each for each in page.find_all(".//main//p/a") if each.get("href") == path]
    assert link.find(".//*[@data-copy-value]") is None
    beside = page.find(".//main//p[@id='integration']/code")
    assert beside.get("data-copy-value") == path.rpartition("/")[2]
