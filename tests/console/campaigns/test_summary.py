"""The page of a campaign: its counts, its newest Codes, and what is left of it when a part fails."""

from support.console.campaign_pages import path_of
from support.console.client import ConsoleClient
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant, make_second_project

HOSTILE = '<script>alert(1)</script> & "Ton\'ight" {name}'


async def test_the_summary_counts_the_codes_by_their_state(
    operator: ConsoleClient, tenant: Tenant, clock: FakeClock
) -> None:
    campaign = await tenant.make_campaign()
    for lifetime_s in (60, 86400, 86400):
        code = await tenant.make_code(campaign_id=campaign["id"], lifetime_s=lifetime_s)
    await tenant.revoke(code["xr_id"])
    clock.advance(seconds=61)

    page = await operator.get(path_of(tenant, campaign["id"]))

    assert page.tiles == {
        "Issued": "3", "Active": "1", "Expired": "1", "Revoked": "1", "With audience measurement": "0"
    }  # fmt: skip
    shown = [str(link.get("href")) for link in page.find_all(".//dl[@class='tiles']//a")]
    for path, count in zip(shown, (3, 1, 1, 1), strict=True):
        assert len((await operator.get(path)).find_all(".//tbody/tr")) == count, path


async def test_a_campaign_leads_to_issuing_in_it_and_shows_its_newest_codes(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    campaign = await tenant.make_campaign(HOSTILE)
    await tenant.make_code()
    intent = {"type": "link", "action": "open", "resource": {"url": "https://example.org/tonight", "title": HOSTILE}}
    code = await tenant.make_code(campaign_id=campaign["id"], intent=intent)

    page = await operator.get(path_of(tenant, campaign["id"]))

    first = page.find(".//main//a[@class='button']")
    assert first.text == "Issue Codes"
    assert (await operator.get(str(first.get("href")))).value("campaign_id") == campaign["id"]
    [row] = page.find_all(".//tbody/tr")
    assert str(row.find("./th/a").get("href")).endswith(f"/codes/{code['xr_id']}")  # type: ignore[union-attr]  # each row has a link
    assert "example.org/tonight" in "".join(row.itertext())
    assert HOSTILE in "".join(row.itertext())
    assert not page.find_all(".//body//script")


async def test_a_list_that_cannot_be_read_leaves_the_campaign(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    operator.core.refuse("GET /v1/codes", 503, "database_unavailable")

    page = await operator.get(path_of(tenant, campaign["id"]))

    assert (page.status, page.tiles["Issued"]) == (200, "0")
    assert "This part cannot be shown at the moment." in page.text


async def test_an_ended_session_is_no_missing_part(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    operator.core.refuse("GET /v1/codes", 401, "unauthenticated")

    page = await operator.get(path_of(tenant, campaign["id"]))

    assert (page.status, "This part cannot be shown" in page.text) == (401, False), page.text


async def test_a_campaign_of_another_project_is_a_page_that_does_not_exist(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    campaign = await tenant.make_campaign()
    other = await make_second_project(tenant)

    for path in (path_of(other, campaign["id"]), f"{path_of(other, campaign['id'])}/stop"):
        assert (await operator.get(path)).trouble == "page_not_found"
