"""Codes in a report by what they do, and the filter by such a name."""

import pytest
from support.audience.measured_tenant import MeasuredTenant
from support.audience.report_pages import report_path, rows_of
from support.console.client import ConsoleClient, PageAnswer
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import make_second_project

from soundmark.console import parts
from soundmark.console.pages.reports import named_codes

HOSTILE = "<img src=x onerror=alert(1)>\u202e{{ 7 * 7 }}"
SHOWN = HOSTILE.replace("\u202e", "\\u202e")  # What reorders a text is escaped.
LIST = "GET /v1/codes"


async def make_code(measured: MeasuredTenant, path: str, title: str | None = None) -> str:
    """Issue a Code that leads to a path of one host, and return its id."""
    resource = {"url": f"https://named.example.org{path}"} | ({} if title is None else {"title": title})
    code = await measured.tenant.make_code(intent={"type": "link", "action": "open", "resource": resource})
    return str(code["xr_id"])


def code_path(measured: MeasuredTenant, xr_id: str) -> str:
    return f"/organizations/{measured.tenant.organization_id}/projects/{measured.tenant.project_id}/codes/{xr_id}"


def links_of(page: PageAnswer, section: str) -> list[tuple[str, str]]:
    """Return the text and the path of each link of a section."""
    found = page.find_all(f".//section[@aria-labelledby='{section}']//a")
    return [("".join(each.itertext()), str(each.get("href"))) for each in found]


def shown_calls(client: ConsoleClient) -> list[str]:
    """Return the ids of the Codes that Core was asked for one by one."""
    paths = [str(each.url.path) for each in client.core.calls]
    return [path.rpartition("/")[2] for path in paths if path.startswith("/v1/codes/")]


async def test_a_row_says_what_its_code_does_and_leads_to_it(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    page = await operator.get(report_path(measured))

    xr_id = measured.in_campaign["xr_id"]
    assert links_of(page, "by_xr_code")[:2] == [
        ("example.org/ä", report_path(measured, xr_id=xr_id)),
        (xr_id, code_path(measured, xr_id)),
    ]
    assert page.find_all(".//p[@id='chosen-code']") == []
    assert shown_calls(operator) == [], "both are among the newest"


async def test_the_chosen_code_is_named_above_the_numbers(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    xr_id = await make_code(measured, "/tonight", HOSTILE)

    page = await operator.get(report_path(measured, xr_id=xr_id))

    named = page.find(".//p[@id='chosen-code']")
    assert "".join(named.itertext()) == f"Code: named.example.org/tonight {SHOWN}"
    assert named.find("a").get("href") == code_path(measured, xr_id)  # type: ignore[union-attr]  # it has one
    assert page.value("xr_id") == xr_id
    assert page.find_all(".//main//img") == []


async def test_a_few_codes_that_are_not_among_the_newest_are_looked_at(
    operator: ConsoleClient, measured: MeasuredTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.core.alter(LIST, lambda document: {**document, "data": []})
    both = [measured.in_campaign["xr_id"], measured.alone["xr_id"]]

    named = await operator.get(report_path(measured))
    assert sorted(shown_calls(operator)) == sorted(both)
    operator.core.calls.clear()
    monkeypatch.setattr(named_codes, "_LOOKED_AT_MAX", 1)
    bounded = await operator.get(report_path(measured))

    assert [row[0].startswith("example.org/ä") for row in rows_of(named, "by_xr_code")] == [True, True]
    assert shown_calls(operator) == both[:1]
    assert [row[0].startswith("example.org/ä") for row in rows_of(bounded, "by_xr_code")] == [True, False]
    assert rows_of(bounded, "by_xr_code")[1][0] == both[1]


@pytest.mark.parametrize(
    "typed",
    ["named.example.org/tonight", "https://named.example.org/tonight", "NAMED.example.org/to", "big Show", "/tonight"],
)
async def test_the_name_of_one_code_leads_to_its_report(
    operator: ConsoleClient, measured: MeasuredTenant, typed: str
) -> None:
    xr_id = await make_code(measured, "/tonight", "The Big Show")
    await make_code(measured, "/morning")

    page = await operator.get(report_path(measured, xr_id=typed, campaign_id=measured.campaign["id"]))

    assert page.status == 303
    assert page.location == report_path(measured, campaign_id=measured.campaign["id"], xr_id=xr_id)


async def test_a_name_that_several_codes_have_is_a_choice(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    first, second = await make_code(measured, "/tonight", HOSTILE), await make_code(measured, "/tomorrow")
    typed = {"xr_id": "named.example.org", "from": "2026-01-01"}

    page = await operator.get(report_path(measured, **typed))

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert {name: page.value(name) for name in typed} == typed
    assert page.find(".//p[@id='refused-xr_id']").text == (
        "Several Codes have this name. Choose one below, or type more of it."
    )
    chosen = [path for _, path in links_of(page, "matches") if "/report?" in path]
    # The clock stands still, so neither is the newer one.
    assert set(chosen) == {report_path(measured, **{"from": "2026-01-01"}, xr_id=each) for each in (first, second)}
    assert page.find_all(".//main//img") == []
    assert not [each for each in operator.core.calls if each.url.path == measured.path]


@pytest.mark.parametrize("typed", ["nowhere.example.org", HOSTILE, "x" * 320, "xr", "cmp_" + "u" * 22])
async def test_a_name_that_no_code_has_is_said_beside_the_field(
    operator: ConsoleClient, measured: MeasuredTenant, typed: str
) -> None:
    page = await operator.get(report_path(measured, xr_id=typed))

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert "No Code has an address that begins like this" in str(page.find(".//p[@id='refused-xr_id']").text)
    assert links_of(page, "matches") == []


@pytest.mark.parametrize("typed", [".", ".."])
async def test_dots_are_no_name(operator: ConsoleClient, measured: MeasuredTenant, typed: str) -> None:
    assert (await operator.get(report_path(measured, xr_id=typed))).status == 404


async def test_the_newest_codes_are_offered_by_their_names(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    xr_id = await make_code(measured, "/tonight", HOSTILE)

    page = await operator.get(report_path(measured))

    assert page.find(".//input[@name='xr_id']").get("list") == "newest-codes"
    options = {str(each.get("value")): str(each.text) for each in page.find_all(".//datalist/option")}
    assert set(options) == {xr_id, measured.alone["xr_id"], measured.in_campaign["xr_id"]}
    assert options[xr_id] == f"named.example.org/tonight · {SHOWN}"
    assert options[measured.alone["xr_id"]] == "example.org/ä"


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_report_does_without_the_names_of_codes(
    operator: ConsoleClient, measured: MeasuredTenant, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    monkeypatch.setattr(parts, "_LATE_S", 0.5)
    xr_id = measured.alone["xr_id"]
    await operator.get(report_path(measured))  # The names of the tenant are known from now on.
    for call in (LIST, *(f"{LIST}/{each['xr_id']}" for each in (measured.alone, measured.in_campaign))):
        operator.core.stall(call) if is_late else operator.core.refuse(call, 503, "database_unavailable")

    page = await operator.get(report_path(measured, xr_id=xr_id))

    assert (page.status, page.trouble) == (200, None)
    assert rows_of(page, "by_xr_code") == [[xr_id, "1", "1"]]
    assert page.value("xr_id") == xr_id


async def test_a_name_that_cannot_be_looked_for_stays_in_the_field(
    operator: ConsoleClient, measured: MeasuredTenant
) -> None:
    operator.core.refuse(LIST, 503, "database_unavailable")

    page = await operator.get(report_path(measured, xr_id="named.example.org", to="2026-11-20"))

    assert (page.status, page.trouble) == (503, "database_unavailable")
    assert (page.value("xr_id"), page.value("to")) == ("named.example.org", "2026-11-20")


async def test_the_codes_of_another_project_are_not_found(operator: ConsoleClient, measured: MeasuredTenant) -> None:
    """Neither by a name nor by an id."""
    other = await make_second_project(measured.tenant)
    intent = {"type": "link", "action": "open", "resource": {"url": "https://other.example.org/"}}
    foreign = await other.make_code(intent=intent)

    by_name = await operator.get(report_path(measured, xr_id="other.example.org"))
    by_id = await operator.get(report_path(measured, xr_id=foreign["xr_id"]))

    assert (by_name.status, links_of(by_name, "matches")) == (422, [])
    assert by_id.find_all(".//p[@id='chosen-code']") == []


async def test_a_choice_is_written_in_french_too(
    operator: ConsoleClient, measured: MeasuredTenant, clock: FakeClock
) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    page = await french.get(report_path(measured, xr_id="example.org"))

    assert "Plusieurs Codes portent ce nom." in page.text
    assert page.find(".//h2[@id='matches']").text == "Codes portant ce nom"
