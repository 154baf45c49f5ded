"""The page of the legacy report."""

from datetime import timedelta

import pytest
from support.console.client import ConsoleClient
from support.console.faults import audience_failing
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret


def path_of(tenant: Tenant, query: str = "") -> str:
    return f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/legacy-report{query}"


@pytest.fixture
async def counted(tenant: Tenant, rival: Rival, measuring: Rival, clock: FakeClock) -> Tenant:
    """A tenant with totals of today and of forty days ago."""
    await tenant.give_cell(rival)
    today = clock.freeze().date()
    for days, events in ((0, 1200), (40, 7)):
        await measuring.run(
            "INSERT INTO legacy_days VALUES (%s, %s, %s, %s)",
            tenant.organization_id,
            tenant.project_id,
            today - timedelta(days=days),
            events,
        )
    return tenant


async def test_daily_totals_are_shown_and_said_to_be_unverified(operator: ConsoleClient, counted: Tenant) -> None:
    page = await operator.get(path_of(counted))

    assert "These totals are not verified" in page.text
    assert page.find(".//dl[@class='tiles']//dd").text == "1,207"
    assert [cell.text for cell in page.find_all(".//tbody/tr/td")] == ["7", "1,200"]
    assert {cell.get("data-label") for cell in page.find_all(".//table[@class='cards']//td")} == {"Events"}
    (path,) = page.find_all(".//figure/{*}svg/{*}path")
    assert str(path.get("d")).count("M") == 2
    assert [each.text for each in page.find_all(".//figure//{*}text[@class='label axis-title']")] == ["Events", "Day"]


async def test_the_period_is_applied_and_stays_on_the_page(
    operator: ConsoleClient, counted: Tenant, clock: FakeClock
) -> None:
    today = clock.now().date().isoformat()

    page = await operator.get(path_of(counted, f"?from={today}&to={today}"))

    assert [cell.text for cell in page.find_all(".//tbody/tr/td")] == ["1,200"]
    assert (page.value("from"), page.value("to")) == (today, today)


async def test_a_malformed_period_is_shown_again(operator: ConsoleClient, counted: Tenant) -> None:
    page = await operator.get(path_of(counted, "?from=soon"))

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.value("from") == "soon"


async def test_a_project_without_totals_says_so(operator: ConsoleClient, tenant: Tenant) -> None:
    page = await operator.get(path_of(tenant))

    assert page.status == 200
    assert "No events in this period." in page.text
    assert page.find_all(".//table") == []


async def test_an_audience_that_fails_keeps_the_period(
    operator: ConsoleClient, counted: Tenant, database_url: Secret, clock: FakeClock
) -> None:
    async with audience_failing(operator, database_url, clock, "down"):
        page = await operator.get(path_of(counted, "?from=2026-01-01"))

    assert (page.status, page.trouble) == (503, "audience_unavailable")
    assert page.value("from") == "2026-01-01"


async def test_the_totals_are_linked_only_where_there_are_some(operator: ConsoleClient, counted: Tenant) -> None:
    project = await counted.api.make_project(counted.organization_id, "New")
    of_organization = f"/organizations/{counted.organization_id}/projects"

    pages = {
        project_id: await operator.get(f"{of_organization}/{project_id}/integrations")
        for project_id in (counted.project_id, project)
    }

    assert {project_id: "/legacy-report" in page.html for project_id, page in pages.items()} == {
        counted.project_id: True,
        project: False,
    }


async def test_a_session_that_has_ended_leads_to_signing_in(
    visitors: ConsoleClient, people: People, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    owner = visitors.sign_in_as(people, "owner", clock.now())
    owner.core.refuse("GET /v1/audience/legacy-report", 401, "unauthenticated")

    page = await owner.get(path_of(tenant))

    assert (page.status, page.trouble) == (401, "sign_in.refused")
    assert page.find(".//a[@class='button']").text == "Sign in"
