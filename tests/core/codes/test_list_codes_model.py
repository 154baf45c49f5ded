"""The pages of `GET /v1/codes` under any filters, compared with a model of the stored Codes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.codes.addresses import begins_with
from support.codes.lists import make_campaign, pointers, read_page, refused, walk_pages
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_second_project

from soundmark.core.domain.codes.address import address_of
from soundmark.kit.text.timestamps import format_timestamp


@dataclass(frozen=True)
class Crowd:
    """An organisation with two projects and three campaigns, two of them in the first project; its Codes vary."""

    tenant: Tenant
    rival: Rival
    projects: tuple[str, str]
    campaigns: dict[str, str]  # With the project of each.
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
    url: str

    def status(self, now: datetime) -> str:
        if self.revoked_at is not None:
            return "revoked"
        return "active" if now < self.expires_at else "expired"


URLS = ("https://example.org/A", "https://example.org/a", "HTTPS://Example.org", "http:", "")
PREFIXES = ("h", "HTTPS:", "https://example.org/", "https://example.org/A", "x")
ISSUERS = ("Radio", "radio", "Radio ", "R%", "Ra_io")


@pytest.fixture
async def crowd(tenant: Tenant, rival: Rival) -> Crowd:
    """Codes of every kind in two projects."""
    now = tenant.api.clock.freeze()
    other = await make_second_project(tenant)
    one = await make_campaign(tenant, rival, "cmp_" + "1" * 22)
    two = await make_campaign(tenant, rival, "cmp_" + "2" * 22)
    three = await make_campaign(other, rival, "cmp_" + "3" * 22)
    await rival.run(
        "INSERT INTO broadcasts SELECT 'brd_' || lpad(n::text, 16, '0'), 'payload', 'signature', NULL, 'org_x'"
        " FROM generate_series(0, 40) AS n"
    )
    projects = (tenant.project_id, other.project_id)
    campaigns = {one: projects[0], two: projects[0], three: projects[1]}
    return Crowd(tenant, rival, projects, campaigns, now)


# Few times, so that many Codes share one and that filters fall on them: seconds before now.
MOMENTS = (1, 2, 3, 5, 8)
BOUNDS = tuple(moment + nudge for moment in MOMENTS for nudge in (-0.001, 0, 0.001))


def some_rows(crowd: Crowd, chance: Random) -> list[Row]:
    """Return Codes of every kind, whose ids do not follow the order of their times; half have a campaign."""
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
                url=chance.choice(URLS),
            )
        )
    return rows


def some_filters(crowd: Crowd, chance: Random) -> dict[str, str]:
    """Return any of the filters together; fewer filters leave more to compare."""
    values: dict[str, Callable[[], str]] = {
        "status": lambda: chance.choice(("active", "expired", "revoked")),
        "campaign_id": lambda: chance.choice(list(crowd.campaigns)),
        "project_id": lambda: chance.choice(crowd.projects),
        "issuer": lambda: chance.choice((*ISSUERS, "nobody")),
        "created_from": lambda: format_timestamp(crowd.now - timedelta(seconds=chance.choice(BOUNDS))),
        "created_to": lambda: format_timestamp(crowd.now - timedelta(seconds=chance.choice(BOUNDS))),
        "address_prefix": lambda: chance.choice(PREFIXES),
        "sort": lambda: chance.choice(("issued_at", "expires_at")),
        "order": lambda: chance.choice(("desc", "asc")),
    }
    return {name: values[name]() for name in chance.sample(list(values), chance.choice((0, 1, 1, 2, 2, 3, 3, 9)))}


async def store_rows(crowd: Crowd, rows: list[Row]) -> None:
    """Replace the organisation's Codes with these."""
    await crowd.rival.run("DELETE FROM codes")
    content = []
    for row in rows:
        times = {name: str(value) for name, value in vars(row).items() if isinstance(value, datetime)}
        content.append({**vars(row), **times, "url": address_of({"url": row.url}).hex()})
    await crowd.rival.run(
        "INSERT INTO codes (organization_id, broadcast_token, key_id, xr_id, project_id, campaign_id, issuer,"
        " issued_at, expires_at, revoked_at, address)"
        " SELECT %s, 'brd_' || right(xr_id, 16), 'key', xr_id, project_id, campaign_id, issuer, issued_at, expires_at,"
        " revoked_at, decode(url, 'hex') FROM jsonb_to_recordset(%s) AS r (xr_id text,"
        " project_id text, campaign_id text, issuer text, issued_at timestamptz, expires_at timestamptz,"
        " revoked_at timestamptz, url text)",
        crowd.tenant.organization_id,
        json.dumps(content),
    )


def list_expected(crowd: Crowd, rows: list[Row], query: dict[str, str]) -> list[str]:
    """Return the ids that the filters leave, in the order of the query.

    RFC 3339 texts of one shape sort like the times.
    """
    left = [
        row
        for row in rows
        if query.get("status", row.status(crowd.now)) == row.status(crowd.now)
        and query.get("campaign_id", row.campaign_id) == row.campaign_id
        and query.get("project_id", row.project_id) == row.project_id
        and query.get("issuer", row.issuer) == row.issuer
        and query.get("created_from", "") <= format_timestamp(row.issued_at)
        and format_timestamp(row.issued_at) < query.get("created_to", "z")
        and begins_with(row.url, query.get("address_prefix", ""))
    ]
    time = attrgetter(query.get("sort", "issued_at"))
    ordered = sorted(left, key=lambda row: (time(row), row.xr_id), reverse=query.get("order") != "asc")
    return [row.xr_id for row in ordered]


@given(chance=st.randoms(use_true_random=True))
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_all_pages_together_are_what_the_filters_select(crowd: Crowd, chance: Random) -> None:
    """Exactly once each, in the order of the query, whatever the filters, the page sizes and the ties."""
    rows = some_rows(crowd, chance)
    await store_rows(crowd, rows)
    for _ in range(10):
        query = some_filters(crowd, chance)
        campaign_id, project_id = query.get("campaign_id"), query.get("project_id")
        if query.get("created_from", "") >= query.get("created_to", "z"):
            assert pointers(await read_page(crowd.tenant, **query)) == [("query", "/created_from")]
        elif campaign_id and project_id and crowd.campaigns[campaign_id] != project_id:
            assert refused(await read_page(crowd.tenant, **query)) == (404, "campaign_not_found")
        else:
            found = await walk_pages(crowd.tenant, chance.choice((2, 3, 7, 100)), **query)
            assert found == list_expected(crowd, rows, query), query
