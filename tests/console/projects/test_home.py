"""The home page of a project: what works now, what runs, what was heard, and the first steps."""

from datetime import timedelta

import pytest
from support.audience.measured_tenant import measure_tenant
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_second_project

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp

PARTS = {
    "GET /v1/codes": "Active Codes",
    "GET /v1/campaigns": "Running campaigns",
    "GET /v1/audience/integrations": "Heard in the last 7 days",
    "GET /v1/audit-log": "Last events",
}


def path_of(tenant: Tenant) -> str:
    return f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"


def headings_of(page: PageAnswer) -> list[str]:
    return [str(each.text) for each in page.find_all(".//main//h2")]


async def test_a_new_project_begins_with_the_first_steps(operator: ConsoleClient, tenant: Tenant) -> None:
    page = await operator.get(path_of(tenant))

    steps = page.find_all(".//ol[@class='checklist']/li")
    assert page.find(".//details[@class='card']").get("open") is not None
    assert [each.get("class") for each in steps] == [None, "untracked", "untracked", None]
    assert [str(each.get("href")) for each in page.find_all(".//ol[@class='checklist']//a")] == [
        *(f"{path_of(tenant)}/codes/issue", "/listen", f"{path_of(tenant)}/integrations")
    ]


async def test_the_steps_lead_to_the_newest_code_that_works(
    operator: ConsoleClient, tenant: Tenant, clock: FakeClock
) -> None:
    clock.freeze()
    made = []
    for lifetime_s in (86400, 2 * 86400, 3600):
        made.append((await tenant.make_code(lifetime_s=lifetime_s))["xr_id"])
        clock.advance(seconds=1)
    at, led_to = f"{path_of(tenant)}/codes/", []
    for hours in (0, 2, 24, 24):
        clock.advance(seconds=hours * 3600)
        page = await operator.sign_in_as_operator(clock.now()).get(path_of(tenant))
        links = [str(each.get("href")) for each in page.find_all(".//ol[@class='checklist']//a")]
        led_to.append([each.removeprefix(at) for each in links if each.startswith(f"{at}xr_")])

    assert led_to == [[made[2]], [made[1]], [made[1]], []]


async def test_the_steps_go_when_a_code_was_heard(
    operator: ConsoleClient, tenant: Tenant, beside_core_url: Secret
) -> None:
    code = await tenant.make_code()
    page = await operator.get(path_of(tenant))
    done = [each.get("class") for each in page.find_all(".//ol[@class='checklist']/li")]
    assert done == ["done", "untracked", "untracked", None]
    assert page.find(".//details[@class='card']").get("open") is None
    links = [str(each.get("href")) for each in page.find_all(".//ol[@class='checklist']//a")]
    assert f"{path_of(tenant)}/codes/{code['xr_id']}" in links

    await measure_tenant(tenant, beside_core_url)

    page = await operator.get(path_of(tenant))
    assert not page.find_all(".//ol[@class='checklist']")
    assert page.tiles["Heard in the last 7 days"] == "3"
    meters = page.find_all(".//meter")
    assert len(meters) == 7
    assert sorted(int(str(each.get("value"))) for each in meters)[-2:] in ([1, 2], [0, 3])
    assert {each.get("max") for each in meters} <= {"2", "3"}


@pytest.mark.parametrize("failing", ["GET /v1/audience/integrations", "GET /v1/codes"])
async def test_a_call_that_fails_does_not_bring_the_steps_back(
    operator: ConsoleClient, tenant: Tenant, failing: str
) -> None:
    await tenant.make_code()
    operator.core.refuse(failing, 503, "database_unavailable")

    assert not (await operator.get(path_of(tenant))).find_all(".//ol[@class='checklist']")


async def test_the_steps_of_a_project_that_measures_nothing_go_some_days_after_its_first_code(
    operator: ConsoleClient, tenant: Tenant, clock: FakeClock
) -> None:
    clock.freeze()
    await tenant.make_code()
    shown = []
    for days in (5, 1, 30):
        clock.advance(days=days)
        await tenant.make_code()
        page = await operator.sign_in_as_operator(clock.now()).get(path_of(tenant))
        shown.append(bool(page.find_all(".//ol[@class='checklist']")))

    assert shown == [True, False, False]


async def test_the_steps_stay_away_once_what_was_heard_is_long_ago(
    operator: ConsoleClient, tenant: Tenant, beside_core_url: Secret, clock: FakeClock
) -> None:
    await measure_tenant(tenant, beside_core_url)
    clock.advance(days=9)

    page = await operator.sign_in_as_operator(clock.now()).get(path_of(tenant))

    assert page.tiles["Heard in the last 7 days"] == "0"
    assert not page.find_all(".//ol[@class='checklist']")


async def test_running_campaigns_are_shown_with_their_ends(
    operator: ConsoleClient, tenant: Tenant, clock: FakeClock
) -> None:
    clock.freeze()

    def in_days(days: int) -> str:
        return format_timestamp(clock.now() + timedelta(days=days))

    without_end = await tenant.make_campaign("Always")
    await tenant.make_campaign("Next year", starts_at=in_days(300))
    await tenant.make_campaign("Over", starts_at=in_days(-3), ends_at=in_days(-1))
    ending = await tenant.make_campaign("This week", ends_at=in_days(4))
    stopped = await tenant.make_campaign("Stopped")
    await tenant.api.post(f"/v1/campaigns/{stopped['id']}/archive", params=tenant.query)
    for _ in range(2):
        await tenant.make_code(campaign_id=ending["id"])

    page = await operator.get(path_of(tenant))

    rows = page.find_all(".//section[@aria-labelledby='running']//tbody/tr")
    links = [[str(each.get("href")) for each in row.findall(".//a")] for row in rows]
    at = path_of(tenant)
    assert links == [
        [
            f"{at}/campaigns/{each['id']}",
            f"{at}/codes/issue?campaign_id={each['id']}",
            f"{at}/campaigns/{each['id']}/stop",
        ]
        for each in (ending, without_end)
    ]
    assert "in 4 days" in "".join(rows[0].itertext())
    assert "no end" in "".join(rows[1].itertext())
    assert [row.find("./td[@class='number']").text for row in rows] == ["2", "0"]  # type: ignore[union-attr]  # each row has one
    assert page.tiles["Running campaigns"] == "2"
    assert page.tiles["Active Codes"] == "2"


async def test_running_campaigns_that_are_not_shown_are_counted(operator: ConsoleClient, tenant: Tenant) -> None:
    for number in range(10):
        await tenant.make_campaign(f"Show {number}")

    page = await operator.get(path_of(tenant))

    assert len(page.find_all(".//section[@aria-labelledby='running']//tbody/tr")) == 8
    assert "and 2 more" in page.text
    assert page.tiles["Running campaigns"] == "10"
    assert "were looked at" not in page.text


async def test_campaigns_that_were_not_looked_at_are_said(operator: ConsoleClient, tenant: Tenant) -> None:
    await tenant.make_campaign()
    operator.core.alter("GET /v1/campaigns", lambda answer: {**answer, "next_cursor": "next"})
    page = await operator.get(path_of(tenant))
    assert page.tiles["Running campaigns"] == "1+"
    assert "Only the newest campaign was looked at." in page.text

    [campaign] = (await tenant.api.get("/v1/campaigns", params=tenant.in_project)).json["data"]
    await tenant.api.post(f"/v1/campaigns/{campaign['id']}/archive", params=tenant.query)

    page = await operator.get(path_of(tenant))
    assert page.tiles["Running campaigns"] == "0+"
    assert "No campaign runs" not in page.text


async def test_without_an_event_among_the_newest_the_page_leads_to_the_audit_log(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    other = {"project_id": "prj_" + "a" * 22}
    operator.core.alter(
        "GET /v1/audit-log", lambda answer: {**answer, "data": [{**each, **other} for each in answer["data"]]}
    )

    section = (await operator.get(path_of(tenant))).find(".//section[@aria-labelledby='events']")

    assert "No recent events of this project." in "".join(section.itertext())
    assert [each.get("href") for each in section.iter("a")] == [f"/organizations/{tenant.organization_id}/audit-log"]


async def test_the_last_events_are_those_of_the_project(operator: ConsoleClient, tenant: Tenant) -> None:
    other = await make_second_project(tenant)
    await other.make_key()
    campaign = await tenant.make_campaign()

    page = await operator.get(path_of(tenant))

    events = ["".join(each.itertext()) for each in page.find_all(".//ol[@class='timeline']/li")]
    assert events
    assert events[0].startswith("operator@localhost created the campaign ")
    who, what = page.find_all(".//ol[@class='timeline']/li[1]/a")
    assert (await operator.get(str(who.get("href")))).value("actor") == "operator"
    assert what.get("href") == f"{path_of(tenant)}/campaigns/{campaign['id']}"
    assert not [each for each in events if "API key" in each]


async def test_a_code_is_found_by_its_address_from_the_home_page(operator: ConsoleClient, tenant: Tenant) -> None:
    code = await tenant.make_code()
    form = (await operator.get(path_of(tenant))).find(".//main//form[@role='search']")

    page = await operator.get(str(form.get("action")), params={"address_prefix": "example.org"})

    assert page.find(".//tbody/tr/th/a").get("href") == f"codes/{code['xr_id']}"


@pytest.mark.parametrize("failing", PARTS)
async def test_a_part_that_fails_says_so_and_leaves_the_rest(
    operator: ConsoleClient, tenant: Tenant, failing: str
) -> None:
    await tenant.make_campaign()
    operator.core.refuse(failing, 503, "database_unavailable")

    page = await operator.get(path_of(tenant))

    assert page.status == 200
    assert set(headings_of(page)) >= set(PARTS.values())
    [trouble] = page.find_all(".//*[@class='trouble']")
    [part] = [each for each in page.find_all(".//section") if trouble in each.iter()]
    assert part.find("./h2").text == PARTS[failing]  # type: ignore[union-attr]  # each part has one


async def test_each_role_sees_what_it_may_read_and_no_error(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    await tenant.make_code()
    await tenant.make_campaign()
    seen = {}
    for role in ("owner", "member", "billing"):
        if role != "owner":
            await people.member(tenant, rival, role, role)
        visitors.sign_in_as(people, role, clock.now())
        page = await visitors.get(path_of(tenant))
        assert (page.status, page.find_all(".//*[@class='trouble']")) == (200, []), role
        acts = [*(each for each in page.find_all(".//main//a") if "/codes/issue" in str(each.get("href")))]
        acts += [each for each in page.find_all(".//main//a") if each.text == "Measure the audience"]
        seen[role] = (headings_of(page), bool(acts))

    read = ["Running campaigns", "Active Codes", "Heard in the last 7 days"]
    assert seen == {"owner": ([*read, "Last events"], True), "member": (read, False), "billing": (read[:1], False)}


async def test_the_calls_of_the_page_run_beside_one_another(operator: ConsoleClient, tenant: Tenant) -> None:
    await operator.assert_calls_run_together(path_of(tenant), PARTS)
