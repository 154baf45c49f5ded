"""The pages of campaigns: lists, schedules, summaries and archiving."""

from datetime import UTC, datetime

import pytest
from support.console.client import ConsoleClient
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_second_project

FIELDS = (
    "name",
    "shown_name",
    *("starts_at", "starts_at_zone", "starts_at_shown", "starts_at_exact"),
    *("ends_at", "ends_at_zone", "ends_at_shown", "ends_at_exact"),
)
HOSTILE = '<script>alert(1)</script> & "Ton\'ight" {name}'


def path_of(tenant: Tenant, campaign_id: str = "") -> str:
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/campaigns"
    return f"{path}/{campaign_id}" if campaign_id else path


async def read_campaign(tenant: Tenant, campaign_id: str) -> dict[str, object]:
    answer = await tenant.api.get(f"/v1/campaigns/{campaign_id}/summary", params=tenant.query)
    campaign: dict[str, object] = answer.json["campaign"]
    return campaign


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
    assert "from 21 Jun 2027, 07:30 UTC until 23 Sept 2027, 04:00 UTC" in page.text
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


async def test_a_campaign_is_renamed_and_a_date_is_cleared(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign(
        starts_at="2027-06-21T07:30:15.250Z", ends_at="2027-09-23T04:00:00.000Z", name="Summer"
    )
    path = path_of(tenant, campaign["id"])
    page = await operator.get(path)
    shown = {name: page.value(name) for name in FIELDS}
    assert (shown["starts_at"], shown["ends_at"]) == ("2027-06-21T07:30:15.25", "2027-09-23T04:00")

    changed = await operator.submit(path, {**shown, "name": "Autumn", "ends_at": ""})

    assert "The campaign was changed." in (await operator.follow(changed)).text
    now = await read_campaign(tenant, campaign["id"])
    assert (now["name"], now["ends_at"]) == ("Autumn", None)
    assert now["starts_at"] == "2027-06-21T07:30:15.250Z", "what was not typed keeps its seconds"


@pytest.mark.parametrize(
    ("known", "shown", "sent", "zone"),
    [
        ("2027-10-31T00:30:00.000Z", "2027-10-31T02:30", "2027-10-31T02:30", "Europe/Paris"),
        ("2027-10-31T01:30:00.000Z", "2027-10-31T02:30", "2027-10-31T02:30", "Europe/Paris"),
        ("2027-06-21T07:30:15.250Z", "2027-06-21T07:30:15.25", "2027-06-21T07:30:15.250", ""),
        ("0999-06-21T07:30:00.000Z", "0999-06-21T07:30", "0999-06-21T07:30", ""),
        ("9999-12-31T23:30:00.000Z", "10000-01-01T08:30", "10000-01-01T08:30", "Asia/Tokyo"),
    ],
)
async def test_a_date_whose_text_nobody_touched_stays_as_it_is(
    operator: ConsoleClient, tenant: Tenant, known: str, shown: str, sent: str, zone: str
) -> None:
    """A text can stand for two moments, or for one that a browser writes otherwise."""
    campaign = await tenant.make_campaign(starts_at=known)
    path = path_of(tenant, campaign["id"])
    page = await operator.get(path)
    as_shown = {**{name: page.value(name) for name in FIELDS}, "starts_at_shown": shown}

    changed = {**as_shown, "name": "Late", "starts_at": sent, "starts_at_zone": zone}
    assert (await operator.submit(path, changed)).status == 303

    now = await read_campaign(tenant, campaign["id"])
    assert (now["name"], now["starts_at"]) == ("Late", known)


async def test_a_refused_change_still_knows_which_dates_were_shown(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign(starts_at="2027-10-31T01:30:00.000Z")
    path = path_of(tenant, campaign["id"])
    shown = {name: (await operator.get(path)).value(name) for name in FIELDS}
    local = {"starts_at": "2027-10-31T02:30", "starts_at_shown": "2027-10-31T02:30", "starts_at_zone": "Europe/Paris"}

    refused = await operator.submit(path, {**shown, **local, "name": ""})

    assert refused.status == 422
    assert {name: refused.value(name) for name in FIELDS} == {**shown, **local, "name": ""}


async def test_a_date_is_moved_in_the_persons_own_zone(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign(ends_at="2027-09-23T04:00:00.000Z")
    typed = {
        "name": "Tonight",
        "shown_name": "Tonight",
        "ends_at": "2027-09-23T08:00",
        "ends_at_zone": "Europe/Paris",
        "ends_at_shown": "2027-09-23T06:00",
        "ends_at_exact": "2027-09-23T04:00:00+00:00",
    }

    await operator.submit(path_of(tenant, campaign["id"]), typed)

    assert (await read_campaign(tenant, campaign["id"]))["ends_at"] == "2027-09-23T06:00:00.000Z"


async def test_a_form_in_which_nothing_differs_changes_nothing(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    path = path_of(tenant, campaign["id"])

    page = await operator.follow(await operator.submit(path, {"name": "Tonight", "shown_name": "Tonight"}))

    assert "There was nothing to change." in page.text
    audit = await tenant.api.get("/v1/audit-log", params={**tenant.query, "action": "campaign.updated"})
    assert audit.json["data"] == []


async def test_what_another_person_changed_meanwhile_stays(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign(name="Tonight")
    url = f"/v1/campaigns/{campaign['id']}"
    await tenant.api.patch(url, params=tenant.query, json={"ends_at": "2027-09-23T04:00:00.000Z"})

    await operator.submit(path_of(tenant, campaign["id"]), {"name": "Late", "shown_name": "Tonight"})

    now = await read_campaign(tenant, campaign["id"])
    assert (now["name"], now["ends_at"]) == ("Late", "2027-09-23T04:00:00.000Z")


async def test_a_name_that_is_taken_is_shown_again(operator: ConsoleClient, tenant: Tenant) -> None:
    await tenant.make_campaign("Tonight")
    campaign = await tenant.make_campaign("Tomorrow")

    page = await operator.submit(path_of(tenant, campaign["id"]), {"name": "Tonight", "shown_name": "Tomorrow"})

    assert (page.status, page.trouble) == (409, "campaign_name_conflict")
    assert (page.value("name"), page.value("shown_name")) == ("Tonight", "Tomorrow")


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


async def test_an_archived_campaign_cannot_be_changed(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    path = path_of(tenant, campaign["id"])

    page = await operator.follow(await operator.submit(f"{path}/archive"))

    assert "Tonight was archived." in page.text
    assert not page.find_all(".//input[@name='name']")
    assert (await operator.submit(path, {"name": "Other", "shown_name": "Tonight"})).trouble == "campaign_archived"
    assert "Tonight was archived." in (await operator.follow(await operator.submit(f"{path}/archive"))).text


async def test_an_archived_campaign_says_that_no_code_can_be_issued(
    operator: ConsoleClient, tenant: Tenant, clock: FakeClock
) -> None:
    campaign = await tenant.make_campaign()
    path = path_of(tenant, campaign["id"])
    await operator.submit(f"{path}/archive")

    for each in (path_of(tenant), path, f"{path}/stop"):
        page = await operator.get(each)
        assert "no longer: the campaign is archived" in page.text
        assert "at any time" not in page.text
    french = operator.other(language="fr").sign_in_as_operator(clock.now())
    assert "plus aucune : la campagne est archivée" in (await french.get(path)).text


async def test_a_campaign_is_archived_after_a_page_that_shows_it(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])
    path = path_of(tenant, campaign["id"])
    assert not (await operator.get(path)).find_all(f".//form[@action='{path}/archive']"), "it cannot be undone"

    asked = await operator.get(f"{path}/archive")

    assert asked.find(".//h1").text == "Archive Tonight"
    assert asked.find(".//td[@data-count='active']").text == "1"
    assert "This cannot be undone." in asked.text
    assert await read_campaign(tenant, campaign["id"]) == campaign
    await operator.submit(f"{path}/archive")
    again = await operator.get(f"{path}/archive")
    assert "This campaign is already archived." in again.text
    assert not again.find_all(".//main//button")


async def test_a_campaign_of_another_project_is_a_page_that_does_not_exist(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    campaign = await tenant.make_campaign()
    other = await make_second_project(tenant)

    for path in (path_of(other, campaign["id"]), f"{path_of(other, campaign['id'])}/stop"):
        assert (await operator.get(path)).trouble == "page_not_found"


async def test_a_member_sees_campaigns_and_may_change_nothing(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    await tenant.make_member(rival, "reader", "member")
    campaign = await tenant.make_campaign()
    visitors.sign_in_as(people, "reader", clock.now())
    path = path_of(tenant, campaign["id"])
    for page in (await visitors.get(path), await visitors.get(path_of(tenant))):
        assert page.status == 200
        assert not page.find_all(".//main//form"), "what they may not do is not offered"
        assert "Emergency stop" not in page.text

    created = await visitors.submit(path_of(tenant), {"name": "Mine"})
    changed = await visitors.submit(path, {"name": "Mine", "shown_name": "Tonight"})
    archived = await visitors.submit(f"{path}/archive")
    stopped = await visitors.submit(f"{path}/stop")

    for page in (created, changed, archived, stopped):
        assert (page.status, page.trouble) == (403, "forbidden")
    assert created.value("name") == changed.value("name") == "Mine"
    assert await read_campaign(tenant, campaign["id"]) == campaign


async def test_a_change_without_a_second_factor_asks_for_it_and_changes_nothing(
    visitors: ConsoleClient, people: People, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    campaign = await tenant.make_campaign()
    path = path_of(tenant, campaign["id"])
    visitors.sign_in_as(people, "owner", clock.now(), acr="1", amr=["pwd"])

    page = await visitors.submit(path, {"name": "Late", "shown_name": "Tonight"})

    assert (page.status, page.trouble) == (403, "sign_in.second_factor_needed")
    assert await read_campaign(tenant, campaign["id"]) == campaign
    stronger = visitors.sign_in_as(people, "owner", clock.now())
    assert (await stronger.get(path)).value("name") == "Late", "what was typed is kept"


async def test_a_stop_needs_no_second_factor(visitors: ConsoleClient, people: People, clock: FakeClock) -> None:
    tenant = await people.tenant_of("owner")
    campaign = await tenant.make_campaign()
    visitors.sign_in_as(people, "owner", clock.now(), acr="1", amr=["pwd"])

    assert (await visitors.submit(f"{path_of(tenant, campaign['id'])}/stop")).status == 303
    assert (await read_campaign(tenant, campaign["id"]))["status"] == "archived"


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


async def test_nobody_is_led_to_a_campaign_whose_page_is_refused(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    """It counts Codes, which somebody who only pays may not read; the list and the project name it all the same."""
    tenant = await people.tenant_of("owner")
    campaign = await tenant.make_campaign("Summer")
    path = path_of(tenant, campaign["id"])
    search = f"/search?organization_id={tenant.organization_id}&project_id={tenant.project_id}&q=Summer"
    for role, status in (("member", 200), ("billing", 403)):
        await people.member(tenant, rival, role, role)
        visitors.sign_in_as(people, role, clock.now())
        assert (await visitors.get(path)).status == status, role
        for place in (path_of(tenant), path_of(tenant).removesuffix("/campaigns"), search):
            page = await visitors.get(place)
            links = [each for each in page.find_all(".//main//a") if each.get("href") == path]
            assert bool(links) == (status == 200), (role, place)
            assert ("Summer" in page.text) == (bool(links) or place != search)
