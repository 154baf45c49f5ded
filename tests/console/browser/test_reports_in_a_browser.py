"""Integrations, reports and usage in a browser: the rules of axe, the keyboard, charts, and the copied secret."""

import asyncio
import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from console.browser.conftest import ServedConsole
from support.audience.measured_tenant import MeasuredTenant, measure_tenant
from support.audience.recorded_events import RecordedEvent, store_events
from support.audience.report_pages import report_path
from support.browser.accessibility import assert_no_page_breaks_a_rule
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret

pytestmark = pytest.mark.xdist_group("browser")

_LABELS = """[...document.querySelectorAll("main td.number")]
  .map((each) => getComputedStyle(each, "::before").content)"""


@pytest.fixture
async def measured(tenant: Tenant, beside_core_url: Secret) -> MeasuredTenant:
    """A tenant with events of ten days, so that charts have several columns."""
    measured = await measure_tenant(tenant, beside_core_url)
    # As its own events, which another hour might put on another day.
    hour_ago = tenant.api.clock.now() - timedelta(hours=1)
    events = [
        RecordedEvent(hour_ago - timedelta(days=days), 100 + token, measured.alone["xr_id"], None, "tablet", "FR")
        for days in range(10)
        for token in range(3 + 2 * days)
    ]
    await asyncio.to_thread(store_events, beside_core_url, measured.integration["id"], events)
    return measured


def paths_of(measured: MeasuredTenant) -> list[str]:
    tenant = measured.tenant
    project = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
    integration = f"{project}/integrations/{measured.integration['id']}"
    return [
        f"{project}/integrations",
        integration,
        f"{integration}/secret",
        f"{integration}/revoke",
        report_path(measured),
        f"{project}/legacy-report",
        f"/organizations/{tenant.organization_id}/usage",
    ]


async def test_no_page_breaks_a_rule(served: ServedConsole, measured: MeasuredTenant, clock: FakeClock) -> None:
    await assert_no_page_breaks_a_rule(served.opener(clock.now()), paths_of(measured))


async def test_rows_of_numbers_are_cards_on_a_narrow_screen(
    served: ServedConsole, measured: MeasuredTenant, clock: FakeClock
) -> None:
    usage = f"/organizations/{measured.tenant.organization_id}/usage"
    page = await served.open(usage, clock.now(), viewport={"width": 390, "height": 844})
    for path, label in ((usage, '"Active integrations"'), (report_path(measured), '"Estimated reach"')):
        await page.goto(path)
        labels = await page.evaluate(_LABELS)
        assert label in labels
        assert "none" not in labels
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_a_report_is_filtered_with_the_keyboard_alone(
    served: ServedConsole, measured: MeasuredTenant, clock: FakeClock
) -> None:
    page = await served.open(report_path(measured), clock.now())

    await page.focus("#field-campaign_id")
    await page.keyboard.type("Tonight")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.textContent") == "Show the report"
    await page.keyboard.press("Enter")

    await page.wait_for_url("**campaign_id=cmp_*")
    assert await page.inner_text(".tiles .value") == "2"


async def test_an_export_is_saved_under_its_name(
    served: ServedConsole, measured: MeasuredTenant, clock: FakeClock, tmp_path: Path
) -> None:
    page = await served.open(report_path(measured), clock.now())

    async with page.expect_download() as downloading:
        await page.click("text=The report (CSV)")
    download = await downloading.value

    assert download.suggested_filename == f"{measured.integration['id']}.svc-audience-aggregate-v1.csv"
    await download.save_as(tmp_path / "report.csv")
    assert (tmp_path / "report.csv").read_bytes().startswith(b"dimension,key,metric,value\r\nfilters,")


async def test_columns_are_as_high_as_their_numbers(
    served: ServedConsole, measured: MeasuredTenant, clock: FakeClock
) -> None:
    page = await served.open(report_path(measured), clock.now())

    path = "section[aria-labelledby=by_day] figure > svg path.series-events"
    heights = [float(height) for height in re.findall(r"v([\d.]+)", str(await page.get_attribute(path, "d")))]
    drawn = await page.eval_on_selector(path, "path => path.getBBox().height")
    cells = await page.eval_on_selector_all(
        "section[aria-labelledby=by_day] tbody td:nth-of-type(1)",
        "cells => cells.map(cell => Number(cell.textContent))",
    )

    assert len(heights) == len(cells) == 10
    assert heights == pytest.approx([max(heights) * events / max(cells) for events in cells], rel=0.02)
    assert drawn == pytest.approx(max(heights), rel=0.02)


async def test_a_column_shows_its_values_and_days_are_chosen_by_dragging(
    served: ServedConsole, measured: MeasuredTenant, clock: FakeClock
) -> None:
    page = await served.open(report_path(measured), clock.now())
    picture = page.locator("section[aria-labelledby=by_day] figure > svg")
    await picture.scroll_into_view_if_needed()
    box = await picture.bounding_box()
    assert box is not None
    columns = json.loads(str(await page.get_attribute("section[aria-labelledby=by_day] figure", "data-columns")))
    scale, y, room = box["width"] / 720, box["y"] + box["height"] / 2, 640 / len(columns)
    first, last = (box["x"] + (72 + (len(columns) - number - 0.5) * room) * scale for number in (5, 3))

    await page.mouse.move(first, y)
    shown = await page.inner_text("section[aria-labelledby=by_day] .values")
    assert re.fullmatch(r"\d+ \w+ \d{4} · Events \d+ · Estimated reach \d+", shown), "as the times of the page"
    await page.mouse.down()
    await page.mouse.move(last, y)
    await page.mouse.up()

    await page.wait_for_url("**from=*")
    assert len(await page.query_selector_all("section[aria-labelledby=by_day] tbody tr")) == 3


async def test_the_secret_of_an_integration_is_copied_with_its_button(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/integrations"
    page = await served.open(path, clock.now(), permissions=["clipboard-read", "clipboard-write"])

    await page.click("main form button")
    secret = await page.input_value("#secret")
    remember_secret(secret)
    await page.click("text=Copy")

    await page.wait_for_selector("text=Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == secret
