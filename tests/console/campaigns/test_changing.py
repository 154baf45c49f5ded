"""Changing the name and the schedule of a campaign: what nobody touched stays."""

import pytest
from support.console.campaign_pages import path_of, read_campaign
from support.console.client import ConsoleClient
from support.tenancy.tenant import Tenant

FIELDS = (
    "name",
    "shown_name",
    *("starts_at", "starts_at_zone", "starts_at_shown", "starts_at_exact"),
    *("ends_at", "ends_at_zone", "ends_at_shown", "ends_at_exact"),
)


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
