"""The filters of `GET /v1/codes`: what they leave, at which moment, and whose."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.core_client import Answer, Api
from support.rival import Rival
from support.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp

UNKNOWN_PROJECT = "prj_" + "A" * 22
UNKNOWN_CAMPAIGN = "cmp_" + "A" * 22


async def page(tenant: Tenant, **query: Any) -> Answer:
    return await tenant.api.get("/v1/codes", params={**tenant.query, **query})


async def listed(tenant: Tenant, **query: Any) -> list[str]:
    """The ids on one page."""
    answer = await page(tenant, **query)
    assert answer.status == 200, answer.body
    return [entry["xr_id"] for entry in answer.json["data"]]


async def walk(tenant: Tenant, limit: int, **query: Any) -> list[str]:
    """The ids on all pages together."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await page(tenant, limit=limit, **cursor, **query)
        assert answer.status == 200, answer.body
        found += [entry["xr_id"] for entry in answer.json["data"]]
        if answer.json["next_cursor"] is None:
            return found
        cursor = {"cursor": answer.json["next_cursor"]}


async def make_campaign(tenant: Tenant, rival: Rival, campaign_id: str = "cmp_" + "c" * 22) -> str:
    await rival.run(
        "INSERT INTO campaigns (organization_id, id, project_id, name, created_at) VALUES (%s, %s, %s, %s, %s)",
        tenant.organization_id,
        campaign_id,
        tenant.project_id,
        campaign_id,
        tenant.api.clock.now(),
    )
    return campaign_id


async def second_project(tenant: Tenant) -> Tenant:
    project_id = await tenant.api.make_project(tenant.organization_id, "Evening show")
    return Tenant(tenant.api, tenant.organization_id, project_id)


def pointers(answer: Answer) -> list[tuple[str, str]]:
    assert (answer.status, answer.code) == (422, "validation_failed"), answer.body
    return [(error["location"], error["pointer"]) for error in answer.json["errors"]]


def refused(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code


@dataclass(frozen=True)
class Crowd:
    """An organisation with two projects and three campaigns, two of them in the first; its Codes come and go."""

    tenant: Tenant
    rival: Rival
    projects: tuple[str, str]
    campaigns: dict[str, str]  # And the project of each.
    now: datetime


@dataclass(frozen=True)
class Row:
    """A stored Code, as the model knows it."""

    xr_id: str
    project_id: str
    campaign_id: str | None
    issuer: str
    issued_at: datetime
    expires_at: datetime
    revoked_at: datetime | None

    def status(self, now: datetime) -> str:
        if self.revoked_at is not None:
            return "revoked"
        return "active" if now < self.expires_at else "expired"


ISSUERS = ("Radio", "radio", "Radio ", "R%", "Ra_io")


@pytest.fixture
async def crowd(tenant: Tenant, rival: Rival) -> Crowd:
    now = tenant.api.clock.freeze()
    other = await second_project(tenant)
    one = await make_campaign(tenant, rival, "cmp_" + "1" * 22)
    two = await make_campaign(tenant, rival, "cmp_" + "2" * 22)
    three = await make_campaign(other, rival, "cmp_" + "3" * 22)
    await rival.run(
        "INSERT INTO broadcasts SELECT 'brd_' || lpad(n::text, 16, '0'), 'payload', 'signature'"
        " FROM generate_series(0, 40) AS n"
    )
    projects = (tenant.project_id, other.project_id)
    campaigns = {one: projects[0], two: projects[0], three: projects[1]}
    return Crowd(tenant, rival, projects, campaigns, now)


# Few moments, so that many Codes share theirs, and that filters fall on them: seconds before now.
MOMENTS = (1, 2, 3, 5, 8)
BOUNDS = tuple(moment + nudge for moment in MOMENTS for nudge in (-0.001, 0, 0.001))


def some_rows(crowd: Crowd, chance: Random) -> list[Row]:
    """Codes of every kind, whose ids are not in the order of their moments. Half of them have a campaign."""
    rows = []
    for number in range(chance.randrange(41)):
        campaign_id = chance.choice([*crowd.campaigns, None, None, None])
        rows.append(
            Row(
                xr_id=f"xr_{number * 7919 % 41:022}",
                project_id=crowd.campaigns[campaign_id] if campaign_id else chance.choice(crowd.projects),
                campaign_id=campaign_id,
                issuer=chance.choice(ISSUERS),
                issued_at=crowd.now - timedelta(seconds=chance.choice(MOMENTS)),
                expires_at=crowd.now + timedelta(seconds=chance.choice((-0.5, -0.001, 0, 0.001, 60))),
                revoked_at=chance.choice((crowd.now, None, None)),
            )
        )
    return rows


def some_filters(crowd: Crowd, chance: Random) -> dict[str, str]:
    """Any of the filters together; few of them leave more to compare."""
    values: dict[str, Callable[[], str]] = {
        "status": lambda: chance.choice(("active", "expired", "revoked")),
        "campaign_id": lambda: chance.choice(list(crowd.campaigns)),
        "project_id": lambda: chance.choice(crowd.projects),
        "issuer": lambda: chance.choice((*ISSUERS, "nobody")),
        "created_from": lambda: format_timestamp(crowd.now - timedelta(seconds=chance.choice(BOUNDS))),
        "created_to": lambda: format_timestamp(crowd.now - timedelta(seconds=chance.choice(BOUNDS))),
    }
    return {name: values[name]() for name in chance.sample(list(values), chance.choice((0, 1, 1, 2, 2, 3, 6)))}


async def stored(crowd: Crowd, rows: list[Row]) -> None:
    """These are the organisation's Codes, and no others."""
    await crowd.rival.run("DELETE FROM codes")
    content = [
        {**vars(row), **{name: str(value) for name, value in vars(row).items() if isinstance(value, datetime)}}
        for row in rows
    ]
    await crowd.rival.run(
        "INSERT INTO codes (organization_id, broadcast_token, key_id, xr_id, project_id, campaign_id, issuer,"
        " issued_at, expires_at, revoked_at)"
        " SELECT %s, 'brd_' || right(xr_id, 16), 'key', r.* FROM jsonb_to_recordset(%s) AS r (xr_id text,"
        " project_id text, campaign_id text, issuer text, issued_at timestamptz, expires_at timestamptz,"
        " revoked_at timestamptz)",
        crowd.tenant.organization_id,
        json.dumps(content),
    )


def model(crowd: Crowd, rows: list[Row], query: dict[str, str]) -> list[str]:
    """What the filters leave, newest first. RFC 3339 in one shape sorts like the moments."""
    left = [
        row
        for row in rows
        if query.get("status", row.status(crowd.now)) == row.status(crowd.now)
        and query.get("campaign_id", row.campaign_id) == row.campaign_id
        and query.get("project_id", row.project_id) == row.project_id
        and query.get("issuer", row.issuer) == row.issuer
        and query.get("created_from", "") <= format_timestamp(row.issued_at)
        and format_timestamp(row.issued_at) < query.get("created_to", "z")
    ]
    return [row.xr_id for row in sorted(left, key=lambda row: (row.issued_at, row.xr_id), reverse=True)]


@given(chance=st.randoms(use_true_random=True))
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_all_pages_together_are_what_the_filters_leave(crowd: Crowd, chance: Random) -> None:
    """Exactly once each, newest first, whatever the filters, the sizes of the pages and the ties."""
    rows = some_rows(crowd, chance)
    await stored(crowd, rows)
    for _ in range(10):
        query = some_filters(crowd, chance)
        campaign_id, project_id = query.get("campaign_id"), query.get("project_id")
        if query.get("created_from", "") >= query.get("created_to", "z"):
            assert pointers(await page(crowd.tenant, **query)) == [("query", "/created_from")]
        elif campaign_id and project_id and crowd.campaigns[campaign_id] != project_id:
            assert refused(await page(crowd.tenant, **query)) == (404, "campaign_not_found")
        else:
            found = await walk(crowd.tenant, chance.choice((2, 3, 7, 100)), **query)
            assert found == model(crowd, rows, query), query


async def test_each_page_is_judged_at_its_own_moment(api: Api, tenant: Tenant) -> None:
    """No moment is in the cursor: what expired between two pages is not active on the second."""
    api.clock.freeze()
    issued = []
    for lifetime_s in (600, 60, 600, 60):
        issued.append((await tenant.make_code(lifetime_s=lifetime_s))["xr_id"])
        api.clock.advance(milliseconds=1)
    one, two, _, four = issued
    first = await page(tenant, status="active", limit=1)
    assert [entry["xr_id"] for entry in first.json["data"]] == [four]
    api.clock.advance(seconds=60)
    assert await listed(tenant, status="active", cursor=first.json["next_cursor"]) == [issued[2], one]
    assert await listed(tenant, status="expired") == [four, two]


async def test_what_is_revoked_between_pages_is_not_active_on_the_next(tenant: Tenant) -> None:
    issued = []
    for _ in range(3):
        issued.append((await tenant.make_code())["xr_id"])
        tenant.api.clock.advance(milliseconds=1)
    first = await page(tenant, status="active", limit=1)
    await tenant.revoke(issued[1])
    assert await listed(tenant, status="active", cursor=first.json["next_cursor"]) == [issued[0]]
    assert await listed(tenant, status="revoked") == [issued[1]]


async def test_a_code_that_ends_while_it_is_read_is_not_listed_as_active(
    api: Api, tenant: Tenant, rival: Rival
) -> None:
    """The page holds fewer than it could, and the next one goes on behind what was left out."""
    api.clock.freeze()
    longer = await tenant.make_code(lifetime_s=600)
    api.clock.advance(milliseconds=1)
    for _ in range(2):
        await tenant.make_code(lifetime_s=60)
    async with rival.holding("LOCK TABLE codes IN ACCESS EXCLUSIVE MODE"):
        listing = await rival.while_waiting(page(tenant, status="active", limit=2))
        api.clock.advance(minutes=1)
    first = await listing
    assert first.json["data"] == []
    assert await listed(tenant, status="active", cursor=first.json["next_cursor"]) == [longer["xr_id"]]


async def test_a_revoked_code_is_revoked_when_its_time_is_over(api: Api, tenant: Tenant) -> None:
    code = await tenant.make_code(lifetime_s=60)
    await tenant.revoke(code["xr_id"])
    api.clock.advance(seconds=61)
    assert await listed(tenant, status="revoked") == [code["xr_id"]]
    assert await listed(tenant, status="expired") == []


async def test_the_first_moment_counts_and_the_last_does_not(api: Api, tenant: Tenant) -> None:
    moment = format_timestamp(api.clock.freeze())
    code = await tenant.make_code()
    later = format_timestamp(api.clock.now() + timedelta(milliseconds=1))
    assert await listed(tenant, created_from=moment) == [code["xr_id"]]
    assert await listed(tenant, created_to=later) == [code["xr_id"]]
    assert await listed(tenant, created_from=moment, created_to=later) == [code["xr_id"]]
    assert await listed(tenant, created_to=moment) == []
    assert await listed(tenant, created_from=later) == []


async def test_a_moment_may_be_named_in_any_offset(api: Api, tenant: Tenant) -> None:
    """It is the same moment, and the same list: a cursor of the one is one of the other."""
    now = api.clock.freeze()
    api.clock.advance(seconds=1)
    for _ in range(2):
        await tenant.make_code()
    utc, east = format_timestamp(now), f"{(now + timedelta(hours=2)).replace(tzinfo=None).isoformat()}+02:00"
    first = await page(tenant, created_from=utc, limit=1)
    assert len(await listed(tenant, created_from=east, cursor=first.json["next_cursor"])) == 1


@pytest.mark.parametrize("name", ["created_from", "created_to"])
@pytest.mark.parametrize(
    "text", ["2026-11-20", "2026-11-20T10:00:00", "2026-13-01T00:00:00Z", "now", "", "0", "-infinity", "\0"], ids=ascii
)
async def test_what_is_no_moment_is_refused(tenant: Tenant, name: str, text: str) -> None:
    assert pointers(await page(tenant, **{name: text})) == [("query", f"/{name}")]


@pytest.mark.parametrize("ahead_s", [0, 0.001, 3600])
async def test_from_must_precede_to(api: Api, tenant: Tenant, ahead_s: float) -> None:
    now = api.clock.now()
    query = {
        "created_from": format_timestamp(now + timedelta(seconds=ahead_s)),
        "created_to": format_timestamp(now),
    }
    assert pointers(await page(tenant, **query)) == [("query", "/created_from")]


@pytest.mark.parametrize(
    "query",
    [
        {"created_from": "0001-01-01T00:00:00Z"},
        {"created_to": "9999-12-31T23:59:59.999Z"},
        {"created_from": "0001-01-01T00:00:00Z", "created_to": "9999-12-31T23:59:59.999Z"},
    ],
)
async def test_the_ends_of_time_are_moments(tenant: Tenant, query: dict[str, str]) -> None:
    code = await tenant.make_code()
    assert await listed(tenant, **query) == [code["xr_id"]]


@pytest.mark.parametrize(
    "status", ["", "Active", "ACTIVE", "live", "active,expired", "null", " active", "\0"], ids=ascii
)
async def test_another_state_is_refused(tenant: Tenant, status: str) -> None:
    assert pointers(await page(tenant, status=status)) == [("query", "/status")]


@pytest.mark.parametrize("issuer", ["", "\0", "a\nb", "\x7f", "x" * 161], ids=ascii)
async def test_what_can_be_no_issuer_is_refused(tenant: Tenant, issuer: str) -> None:
    assert pointers(await page(tenant, issuer=issuer)) == [("query", "/issuer")]


async def test_an_issuer_is_that_issuer_exactly(tenant: Tenant) -> None:
    """No part of it, no pattern, no other case and nothing trimmed; 160 characters of any language."""
    names = ("Radio Nordlicht", "radio nordlicht", "Radio", " Radio", "%", "Ümlaut", "雪" * 160)
    issued = {name: (await tenant.make_code(issuer=name))["xr_id"] for name in names}
    assert {name: await listed(tenant, issuer=name) for name in names} == {
        name: [xr_id] for name, xr_id in issued.items()
    }
    assert await listed(tenant, issuer="Radio Nordlich") == []


@pytest.mark.parametrize("project_id", [UNKNOWN_PROJECT, "", "x", "prj_", "prj_\0", "prj_ü", "org_" + "A" * 22])
async def test_a_project_that_is_not_there_is_not_found(tenant: Tenant, project_id: str) -> None:
    await tenant.make_code()
    assert refused(await page(tenant, project_id=project_id)) == (404, "project_not_found")


@pytest.mark.parametrize("campaign_id", [UNKNOWN_CAMPAIGN, "", "x", "cmp_", "cmp_\0", "cmp_ü", "prj_" + "A" * 22])
async def test_a_campaign_that_is_not_there_is_not_found(tenant: Tenant, campaign_id: str) -> None:
    await tenant.make_code()
    assert refused(await page(tenant, campaign_id=campaign_id)) == (404, "campaign_not_found")


@pytest.mark.parametrize("name", ["project_id", "campaign_id"])
async def test_an_id_that_is_too_long_is_refused(tenant: Tenant, name: str) -> None:
    assert pointers(await page(tenant, **{name: "x" * 161})) == [("query", f"/{name}")]


async def test_the_project_is_looked_for_before_the_campaign(tenant: Tenant) -> None:
    answer = await page(tenant, project_id=UNKNOWN_PROJECT, campaign_id=UNKNOWN_CAMPAIGN)
    assert refused(answer) == (404, "project_not_found")


async def test_another_organisations_project_and_campaign_are_not_there(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Both organisations are the caller's own: what separates them is the question."""
    other = await make_tenant(api)
    campaign_id = await make_campaign(other, rival)
    await other.make_code(campaign_id=campaign_id)
    assert refused(await page(tenant, project_id=other.project_id)) == (404, "project_not_found")
    assert refused(await page(tenant, campaign_id=campaign_id)) == (404, "campaign_not_found")


async def test_a_project_or_campaign_without_codes_is_an_empty_list(tenant: Tenant, rival: Rival) -> None:
    campaign_id = await make_campaign(tenant, rival)
    assert await listed(tenant, project_id=tenant.project_id) == []
    assert await listed(tenant, campaign_id=campaign_id) == []


async def test_an_archived_campaign_stays_listed(api: Api, tenant: Tenant, rival: Rival) -> None:
    campaign_id = await make_campaign(tenant, rival)
    code = await tenant.make_code(campaign_id=campaign_id)
    await tenant.make_code()
    await rival.run("UPDATE campaigns SET archived_at = %s", api.clock.now())
    assert await listed(tenant, campaign_id=campaign_id) == [code["xr_id"]]


async def test_a_key_lists_its_own_project_whether_it_names_it_or_not(tenant: Tenant, rival: Rival) -> None:
    own = await tenant.make_code()
    other = await second_project(tenant)
    campaign_id = await make_campaign(other, rival)
    await other.make_code(campaign_id=campaign_id)
    server = tenant.with_key(await tenant.make_key(scopes=["codes:read"]))
    assert await listed(server) == await listed(server, project_id=tenant.project_id) == [own["xr_id"]]
    assert refused(await page(server, project_id=other.project_id)) == (404, "project_not_found")
    assert refused(await page(server, project_id=UNKNOWN_PROJECT)) == (404, "project_not_found")
    assert refused(await page(server, campaign_id=campaign_id)) == (404, "campaign_not_found")


async def test_a_cursor_belongs_to_its_filters(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Added, left out or changed, one by one; in another order they are the same."""
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
    cursor = (await page(tenant, limit=1, **filters)).json["next_cursor"]
    plain = (await page(tenant, limit=1)).json["next_cursor"]
    others = {
        "status": "expired",
        "issuer": "Radio",
        "created_from": "2020-01-01T00:00:00.001Z",
        "created_to": format_timestamp(api.clock.now() + timedelta(days=2)),
    }
    for name, value in filters.items():
        left_out = {other: filters[other] for other in filters if other != name}
        assert refused(await page(tenant, cursor=cursor, **left_out)) == (422, "invalid_cursor"), name
        assert refused(await page(tenant, cursor=plain, **{name: value})) == (422, "invalid_cursor"), name
    for name, value in others.items():
        assert refused(await page(tenant, cursor=cursor, **{**filters, name: value})) == (422, "invalid_cursor"), name
    assert len(await listed(tenant, cursor=cursor, **dict(reversed(filters.items())))) == 1


async def test_a_cursor_of_a_person_is_none_of_a_key(tenant: Tenant) -> None:
    """They walk different lists, also where both hold the same Codes now."""
    for _ in range(2):
        await tenant.make_code()
    server = tenant.with_key(await tenant.make_key(scopes=["codes:read"]))
    cursor = (await page(tenant, limit=1)).json["next_cursor"]
    assert refused(await page(server, cursor=cursor)) == (422, "invalid_cursor")
