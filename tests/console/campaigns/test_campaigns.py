"""The list of campaigns, and creating one."""

from datetime import UTC, datetime

import pytest
from support.console.campaign_pages import path_of
from support.console.client import ConsoleClient
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

HOSTILE = '<script>alert(1)</script> & "Ton\'ight" {name}'


async def test_a_campaign_is_created_with_the_times_of_the_persons_own_zone(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    empty = await operator.get(path_of(tenant))
    assert "No campaigns yet." in empty.text
    typed = {
        "name": "Summer festival",
        "starts_at": "2027-06-21T09:30",
        "starts_at_zone": "Europe/Paris",
        "ends_at": "2027-09-23T00:00",
        "ends_at_zone": "America/New_York",
    }

    created = await operator.submit(path_of(tenant), typed)

    [campaign] = (await tenant.api.get("/v1/campaigns", params=tenant.in_project)).json["data"]
    assert (campaign["starts_at"], campaign["ends_at"]) == ("2027-06-21T07:30:00.000Z", "2027-09-23T04:00:00.000Z")
    assert created.location == path_of(tenant, campaign["id"])
    page = await operator.follow(created)
    assert "Summer festival was created." in page.text
    assert "from 21 Jun 2027, 07:30 until 23 Sept 2027, 04:00" in page.text
    listed = await operator.get(path_of(tenant))
    assert listed.find(".//tbody/tr/th/a").get("href") == path_of(tenant, campaign["id"])


async def test_dates_are_optional(operator: ConsoleClient, tenant: Tenant) -> None:
    page = await operator.follow(await operator.submit(path_of(tenant), {"name": "Tonight", "starts_at": ""}))

    assert "at any time" in page.text


@pytest.mark.parametrize(
    ("typed", "refused"),
    [
        ({"name": "", "starts_at": "2027-06-21T09:30"}, "name"),
        ({"name": "Late", "starts_at": "2027-06-21T09:30", "ends_at": "2027-06-21T09:29"}, "ends_at"),
        ({"name": "Late", "starts_at": "soon"}, "starts_at"),
        ({"name": "Late", "ends_at": "0001-01-01T00:00", "ends_at_zone": "Asia/Tokyo"}, "ends_at"),
        ({"name": "Late", "ends_at": "2027-06-21T09:29", "ends_at_zone": "Mars/Olympus"}, "ends_at"),
    ],
)
async def test_a_refused_campaign_is_shown_again_with_what_was_typed(
    operator: ConsoleClient, tenant: Tenant, typed: dict[str, str], refused: str
) -> None:
    page = await operator.submit(path_of(tenant), typed)

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.find(f".//p[@id='refused-{refused}']").text
    assert {name: page.value(name) for name in typed} == typed
    assert (await tenant.api.get("/v1/campaigns", params=tenant.in_project)).json["data"] == []


async def test_a_hostile_name_is_text_on_every_page(operator: ConsoleClient, tenant: Tenant) -> None:
    created = await operator.submit(path_of(tenant), {"name": HOSTILE})

    for path in (path_of(tenant), created.location, f"{created.location}/stop"):
        page = await operator.get(path)
        assert HOSTILE in page.text
        assert not page.find_all(".//body//script")


@pytest.mark.parametrize("code", ["audience_unavailable", "database_unavailable"])
async def test_a_service_that_is_down_keeps_what_was_typed(operator: ConsoleClient, tenant: Tenant, code: str) -> None:
    operator.core.refuse("POST /v1/campaigns", 503, code)

    page = await operator.submit(path_of(tenant), {"name": "Tonight", "starts_at": "2027-06-21T09:30"})

    assert (page.status, page.trouble) == (503, code)
    assert (page.value("name"), page.value("starts_at")) == ("Tonight", "2027-06-21T09:30")


async def test_a_core_that_is_down_keeps_what_was_typed(operator: ConsoleClient, tenant: Tenant) -> None:
    operator.core.go_down()
    page = await operator.submit(path_of(tenant), {"name": "Tonight"})
    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert page.value("name") == "Tonight"

    operator.core.recover()
    again = await operator.submit(path_of(tenant), {"name": page.value("name")})

    assert "Tonight was created." in (await operator.follow(again)).text


async def test_the_pages_speak_french(operator: ConsoleClient, tenant: Tenant, clock: FakeClock) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())
    campaign = await tenant.make_campaign(starts_at=f"{datetime.now(UTC).year + 1}-06-21T07:30:00.000Z")

    assert (await french.get(path_of(tenant))).heading == "Campagnes"
    assert "à partir du 21 juin" in (await french.get(path_of(tenant, campaign["id"]))).text
