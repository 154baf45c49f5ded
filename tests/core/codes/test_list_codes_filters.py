"""The filters of `GET /v1/codes`: which Codes they select, at which time, and which values they refuse."""

from datetime import timedelta

import pytest
from support.api.core_client import Api
from support.codes.lists import list_ids, make_campaign, pointers, read_page, refused
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_second_project, make_tenant

from soundmark.kit.text.timestamps import format_timestamp

UNKNOWN_PROJECT = "prj_" + "A" * 22
UNKNOWN_CAMPAIGN = "cmp_" + "A" * 22


async def test_each_page_is_judged_at_its_own_moment(api: Api, tenant: Tenant) -> None:
    """The cursor holds no time: a Code that expired between two pages is not active on the second."""
    api.clock.freeze()
    issued = []
    for lifetime_s in (600, 60, 600, 60):
        issued.append((await tenant.make_code(lifetime_s=lifetime_s))["xr_id"])
        api.clock.advance(milliseconds=1)
    one, two, _, four = issued
    first = await read_page(tenant, status="active", limit=1)
    assert [entry["xr_id"] for entry in first.json["data"]] == [four]
    api.clock.advance(seconds=60)
    assert await list_ids(tenant, status="active", cursor=first.json["next_cursor"]) == [issued[2], one]
    assert await list_ids(tenant, status="expired") == [four, two]


async def test_a_code_revoked_between_pages_is_not_active_on_the_next(tenant: Tenant) -> None:
    issued = []
    for _ in range(3):
        issued.append((await tenant.make_code())["xr_id"])
        tenant.api.clock.advance(milliseconds=1)
    first = await read_page(tenant, status="active", limit=1)
    await tenant.revoke(issued[1])
    assert await list_ids(tenant, status="active", cursor=first.json["next_cursor"]) == [issued[0]]
    assert await list_ids(tenant, status="revoked") == [issued[1]]


async def test_a_code_that_ends_while_it_is_read_is_not_listed_as_active(
    api: Api, tenant: Tenant, rival: Rival
) -> None:
    """The page holds fewer Codes than it could, and the next one continues after those left out."""
    api.clock.freeze()
    longer = await tenant.make_code(lifetime_s=600)
    api.clock.advance(milliseconds=1)
    for _ in range(2):
        await tenant.make_code(lifetime_s=60)
    async with rival.holding("LOCK TABLE codes IN ACCESS EXCLUSIVE MODE"):
        listing = await rival.while_waiting(read_page(tenant, status="active", limit=2))
        api.clock.advance(minutes=1)
    first = await listing
    assert first.json["data"] == []
    assert await list_ids(tenant, status="active", cursor=first.json["next_cursor"]) == [longer["xr_id"]]


async def test_a_time_may_have_any_offset(api: Api, tenant: Tenant) -> None:
    """The list is the same, so a cursor of one spelling works with another."""
    now = api.clock.freeze()
    api.clock.advance(seconds=1)
    for _ in range(2):
        await tenant.make_code()
    utc, east = format_timestamp(now), f"{(now + timedelta(hours=2)).replace(tzinfo=None).isoformat()}+02:00"
    first = await read_page(tenant, created_from=utc, limit=1)
    assert len(await list_ids(tenant, created_from=east, cursor=first.json["next_cursor"])) == 1


@pytest.mark.parametrize("name", ["created_from", "created_to"])
@pytest.mark.parametrize("text", ["2026-11-20", "\0"], ids=ascii)
async def test_a_malformed_time_is_refused(tenant: Tenant, name: str, text: str) -> None:
    assert pointers(await read_page(tenant, **{name: text})) == [("query", f"/{name}")]


@pytest.mark.parametrize("ahead_s", [0, 0.001])
async def test_from_must_precede_to(api: Api, tenant: Tenant, ahead_s: float) -> None:
    now = api.clock.now()
    query = {
        "created_from": format_timestamp(now + timedelta(seconds=ahead_s)),
        "created_to": format_timestamp(now),
    }
    assert pointers(await read_page(tenant, **query)) == [("query", "/created_from")]


async def test_the_earliest_and_latest_times_are_accepted(tenant: Tenant) -> None:
    code = await tenant.make_code()
    assert await list_ids(tenant, created_from="0001-01-01T00:00:00Z", created_to="9999-12-31T23:59:59.999Z") == [
        code["xr_id"]
    ]


@pytest.mark.parametrize("status", ["", "Active"], ids=ascii)
async def test_an_unknown_status_is_refused(tenant: Tenant, status: str) -> None:
    assert pointers(await read_page(tenant, status=status)) == [("query", "/status")]


@pytest.mark.parametrize("issuer", ["", "\0", "x" * 161], ids=ascii)
async def test_a_malformed_issuer_is_refused(tenant: Tenant, issuer: str) -> None:
    assert pointers(await read_page(tenant, issuer=issuer)) == [("query", "/issuer")]


@pytest.mark.parametrize("project_id", [UNKNOWN_PROJECT, "prj_\0"])
async def test_a_missing_project_is_not_found(tenant: Tenant, project_id: str) -> None:
    await tenant.make_code()
    assert refused(await read_page(tenant, project_id=project_id)) == (404, "project_not_found")


@pytest.mark.parametrize("campaign_id", [UNKNOWN_CAMPAIGN, "cmp_\0"])
async def test_a_missing_campaign_is_not_found(tenant: Tenant, campaign_id: str) -> None:
    await tenant.make_code()
    assert refused(await read_page(tenant, campaign_id=campaign_id)) == (404, "campaign_not_found")


@pytest.mark.parametrize("name", ["project_id", "campaign_id"])
async def test_an_id_that_is_too_long_is_refused(tenant: Tenant, name: str) -> None:
    assert pointers(await read_page(tenant, **{name: "x" * 161})) == [("query", f"/{name}")]


async def test_the_project_is_looked_for_before_the_campaign(tenant: Tenant) -> None:
    answer = await read_page(tenant, project_id=UNKNOWN_PROJECT, campaign_id=UNKNOWN_CAMPAIGN)
    assert refused(answer) == (404, "project_not_found")


async def test_another_organisations_project_and_campaign_are_not_found(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Both organisations belong to the caller: the one named in the request decides."""
    other = await make_tenant(api)
    campaign_id = await make_campaign(other, rival)
    await other.make_code(campaign_id=campaign_id)
    assert refused(await read_page(tenant, project_id=other.project_id)) == (404, "project_not_found")
    assert refused(await read_page(tenant, campaign_id=campaign_id)) == (404, "campaign_not_found")


async def test_a_key_lists_its_own_project_whether_it_names_it_or_not(tenant: Tenant, rival: Rival) -> None:
    own = await tenant.make_code()
    other = await make_second_project(tenant)
    campaign_id = await make_campaign(other, rival)
    await other.make_code(campaign_id=campaign_id)
    server = tenant.with_key(await tenant.make_key(scopes=["codes:read"]))
    assert await list_ids(server) == await list_ids(server, project_id=tenant.project_id) == [own["xr_id"]]
    assert refused(await read_page(server, project_id=other.project_id)) == (404, "project_not_found")
    assert refused(await read_page(server, project_id=UNKNOWN_PROJECT)) == (404, "project_not_found")
    assert refused(await read_page(server, campaign_id=campaign_id)) == (404, "campaign_not_found")


async def test_a_cursor_belongs_to_its_filters(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Whether added, left out or changed; only the order does not matter."""
    campaign_id = await make_campaign(tenant, rival)
    for _ in range(2):
        await tenant.make_code(campaign_id=campaign_id)
    filters = {
        "status": "active",
        "project_id": tenant.project_id,
        "campaign_id": campaign_id,
        "issuer": "Radio Nordlicht",
        "created_from": "2020-01-01T00:00:00.000Z",
        "created_to": format_timestamp(api.clock.now() + timedelta(days=1)),
    }
    cursor = (await read_page(tenant, limit=1, **filters)).json["next_cursor"]
    plain = (await read_page(tenant, limit=1)).json["next_cursor"]
    others = {
        "status": "expired",
        "issuer": "Radio",
        "created_from": "2020-01-01T00:00:00.001Z",
        "created_to": format_timestamp(api.clock.now() + timedelta(days=2)),
    }
    for name, value in filters.items():
        left_out = {other: filters[other] for other in filters if other != name}
        assert refused(await read_page(tenant, cursor=cursor, **left_out)) == (422, "invalid_cursor"), name
        assert refused(await read_page(tenant, cursor=plain, **{name: value})) == (422, "invalid_cursor"), name
    for name, value in others.items():
        assert refused(await read_page(tenant, cursor=cursor, **{**filters, name: value})) == (422, "invalid_cursor"), (
            name
        )
    assert len(await list_ids(tenant, cursor=cursor, **dict(reversed(filters.items())))) == 1


async def test_a_cursor_of_a_person_is_refused_from_a_key(tenant: Tenant) -> None:
    """They belong to different lists, even while both hold the same Codes."""
    for _ in range(2):
        await tenant.make_code()
    server = tenant.with_key(await tenant.make_key(scopes=["codes:read"]))
    cursor = (await read_page(tenant, limit=1)).json["next_cursor"]
    assert refused(await read_page(server, cursor=cursor)) == (422, "invalid_cursor")
