"""The page of an organisation's usage."""

from support.console.client import ConsoleClient
from support.console.faults import audience_failing
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.console.charts import forecast_month
from soundmark.kit.crypto.secret import Secret


def path_of(tenant: Tenant) -> str:
    return f"/organizations/{tenant.organization_id}/usage"


async def test_usage_shows_codes_and_audience_against_their_quotas(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await tenant.make_quota(rival, 4)
    await tenant.make_code()
    await tenant.make_integration()

    page = await operator.get(path_of(tenant))

    assert "1 of 4 Codes issued." in page.text
    assert "3 Codes can still be issued this month." in page.text
    assert page.find(".//section[@aria-labelledby='codes']//{*}rect[2]").get("width") == "25.0"
    (row,) = page.find_all(".//tbody/tr")
    assert ["".join(cell.itertext()).strip() for cell in list(row)[:4]] == ["Demo", "1", "0", "100"]


async def test_a_used_up_quota_stands_out(operator: ConsoleClient, tenant: Tenant, rival: Rival) -> None:
    await tenant.make_quota(rival, 1)
    await tenant.make_code()

    page = await operator.get(path_of(tenant))

    bar = page.find(".//section[@aria-labelledby='codes']//{*}rect[2]")
    assert (bar.get("class"), bar.get("width")) == ("series-full", "100.0")
    assert "0 Codes can still be issued this month." in page.text


async def test_usage_of_codes_stays_readable_without_audience(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, database_url: Secret, clock: FakeClock
) -> None:
    await tenant.give_cell(rival)
    async with audience_failing(operator, database_url, clock, "down"):
        page = await operator.get(path_of(tenant))

    assert page.status == 200
    assert "0 of 100 Codes issued." in page.text
    assert "its usage is unavailable at the moment" in page.text
    assert page.find_all(".//table") == []


async def test_every_member_sees_the_usage_in_their_language(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("ada")
    await tenant.make_member(rival, "eve", "billing")

    page = await visitors.other(language="fr").sign_in_as(people, "eve", clock.now()).get(path_of(tenant))
    stranger = await visitors.other().sign_in_as(people, "mallory", clock.now()).get(path_of(tenant))

    assert page.status == 200
    assert "Codes émis : 0 sur 100." in page.text
    assert stranger.status == 404


async def test_the_page_says_how_the_month_ends_if_it_goes_on_and_when_quotas_begin_anew(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await tenant.make_quota(rival, 2)
    await tenant.make_code()
    await tenant.make_code()
    now = tenant.api.clock.now()
    forecast = forecast_month(2, now)

    page = await operator.get(path_of(tenant))

    # There is no forecast on the first day of a month.
    assert (f"At this pace you will issue {forecast} Codes this month." in page.text) == (forecast is not None)
    assert f"{now:%B %Y}, in UTC." in page.text
    assert ("See the offers" in page.text) == (forecast is not None and forecast > 2)
