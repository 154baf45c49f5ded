"""`GET /v1/usage`: how much an organisation has used in the calendar month, and how much its plan allows."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.api.core_client import Api
from support.audience.faults import KINDS, core_beside, failing_audience
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.crypto.secret import Secret

DEMO = {"mode": "demo", "events": 0, "active_integrations": 0, "monthly_quota": 100}


async def usage(tenant: Tenant) -> Any:
    answer = await tenant.api.get("/v1/usage", params=tenant.query)
    assert answer.status == 200, answer.body
    return answer.json


def at(api: Api, *moment: int) -> None:
    """Set the clock to this time, UTC."""
    api.clock.freeze()
    api.clock.frozen_at = datetime(*moment, tzinfo=UTC)  # type: ignore[misc]  # A year, a month and a day at least.


async def make_codes(tenant: Tenant, count: int) -> None:
    answer = await tenant.api.post("/v1/codes/batch", json={**tenant.code_body(), "count": count})
    assert answer.status == 201, answer.body


async def test_a_new_organisation_has_the_starter_plan(api: Api, tenant: Tenant) -> None:
    """API v1, "Limits": 100 Codes a calendar month, and 100 events of a demo."""
    at(api, 2026, 11, 20)
    assert await usage(tenant) == {
        "organization_id": tenant.organization_id,
        "month": "2026-11",
        "codes": {"issued": 0, "monthly_quota": 100, "remaining": 100},
        "audience": {"status": "available", "modes": [DEMO]},
    }


async def test_codes_are_counted_whatever_their_status(api: Api, tenant: Tenant) -> None:
    """Expired and revoked ones, of every project, with or without a campaign, and none of another organisation."""
    at(api, 2026, 11, 20)
    other = Tenant(api, tenant.organization_id, await api.make_project(tenant.organization_id, "Evening show"))
    campaign = await other.make_campaign()
    await make_codes(tenant, 3)
    await tenant.make_code(lifetime_s=1)
    await tenant.revoke((await tenant.make_code())["xr_id"])
    await other.make_code(campaign_id=campaign["id"])
    await (await make_tenant(api)).make_code()
    api.clock.advance(days=1)
    assert (await usage(tenant))["codes"] == {"issued": 6, "monthly_quota": 100, "remaining": 94}


async def test_refused_and_repeated_issuances_are_not_counted(api: Api, tenant: Tenant) -> None:
    at(api, 2026, 11, 20)
    key = {"Idempotency-Key": "k" * 16}
    body = tenant.code_body()
    assert (await api.post("/v1/codes", json={**body, "expires_at": "2020-01-01T00:00:00Z"})).status == 422
    assert (await api.post("/v1/codes", json=body, params={"dry_run": "true"})).status == 200
    for path in ("/v1/codes", "/v1/codes", "/v1/codes/recover"):
        assert (await api.post(path, json=body, headers=key)).status in {200, 201}
    assert (await usage(tenant))["codes"]["issued"] == 1


async def test_each_month_begins_anew_in_utc(api: Api, tenant: Tenant) -> None:
    last, first = (2026, 12, 31, 23, 59, 59, 999000), (2027, 1, 1)
    at(api, *last)
    await make_codes(tenant, 2)
    assert (await usage(tenant))["codes"]["issued"] == 2
    at(api, *first)
    summary = await usage(tenant)
    assert (summary["month"], summary["codes"]) == ("2027-01", {"issued": 0, "monthly_quota": 100, "remaining": 100})
    await make_codes(tenant, 3)
    assert (await usage(tenant))["codes"]["issued"] == 3
    at(api, *last)
    assert (await usage(tenant))["codes"]["issued"] == 2


async def test_another_plan_allows_another_number(tenant: Tenant, rival: Rival) -> None:
    await make_codes(tenant, 5)
    await tenant.make_quota(rival, 1000)
    assert (await usage(tenant))["codes"] == {"issued": 5, "monthly_quota": 1000, "remaining": 995}


async def test_it_agrees_with_the_headers_of_an_issuance(tenant: Tenant) -> None:
    answer = await tenant.api.post("/v1/codes", json=tenant.code_body())
    remaining = (await usage(tenant))["codes"]["remaining"]
    assert f";r={remaining};" in answer.headers["ratelimit"]


@given(days=st.lists(st.tuples(st.integers(0, 70), st.integers(1, 4), st.booleans()), max_size=8))
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_each_day_counts_the_codes_issued_on_it(
    api: Api, rival: Rival, days: list[tuple[int, int, bool]]
) -> None:
    """After any interleaving of issuances, refusals and months, each day's count is what was issued on it."""
    tenant = await make_tenant(api)
    start = datetime(2026, 11, 1, 12, tzinfo=UTC)
    for day, count, is_valid in days:
        api.clock.freeze()
        api.clock.frozen_at = start + timedelta(days=day)
        expires_at = {} if is_valid else {"expires_at": "2020-01-01T00:00:00Z"}
        await api.post("/v1/codes/batch", json={**tenant.code_body(), "count": count, **expires_at})
        month = api.clock.now().strftime("%Y-%m")
        issued = await rival.rows(
            "SELECT count(*) FROM codes WHERE organization_id = %s"
            " AND to_char(issued_at AT TIME ZONE 'UTC', 'YYYY-MM') = %s",
            tenant.organization_id,
            month,
        )
        summary = await usage(tenant)
        assert (summary["month"], [(summary["codes"]["issued"],)]) == (month, issued)
    counted = await rival.rows(
        "SELECT day, issued_count FROM code_usage_days WHERE organization_id = %s ORDER BY day", tenant.organization_id
    )
    assert counted == await rival.rows(
        "SELECT (issued_at AT TIME ZONE 'UTC')::date, count(*) FROM codes WHERE organization_id = %s GROUP BY 1"
        " ORDER BY 1",
        tenant.organization_id,
    )


async def test_events_are_counted_by_mode(api: Api, tenant: Tenant, rival: Rival, measuring: Rival) -> None:
    """Events of this month only, active integrations of every project, and what the entitlements allow now."""
    at(api, 2026, 11, 20)
    await tenant.make_entitlement(rival, "contract", monthly_events=5000)
    await tenant.make_entitlement(rival, "self_service", monthly_events=7, ends_at=api.clock.now())
    first = await tenant.make_integration(mode="contract", retention_days=90)
    await tenant.make_integration(mode="contract", retention_days=90)
    await tenant.make_integration()
    await tenant.change_integration("revoke", first["id"])
    other = Tenant(api, tenant.organization_id, await api.make_project(tenant.organization_id, "Evening show"))
    await other.make_integration()
    await (await make_tenant(api)).make_integration()
    for mode, first_day, events in (
        ("contract", "2026-11-01", 41),
        ("contract", "2026-10-01", 1000),
        ("demo", "2026-11-01", 5),
    ):
        await measuring.run(
            "INSERT INTO event_months (organization_id, mode, first_day, events) VALUES (%s, %s, %s, %s)",
            tenant.organization_id,
            mode,
            first_day,
            events,
        )
    assert (await usage(tenant))["audience"] == {
        "status": "available",
        "modes": [
            {"mode": "demo", "events": 5, "active_integrations": 2, "monthly_quota": 100},
            {"mode": "contract", "events": 41, "active_integrations": 1, "monthly_quota": 5000},
        ],
    }


async def test_a_used_mode_is_listed_after_its_entitlement_has_ended(api: Api, tenant: Tenant, rival: Rival) -> None:
    at(api, 2026, 11, 20)
    await tenant.make_entitlement(rival, ends_at=api.clock.now() + timedelta(hours=1))
    await tenant.make_integration(mode="contract", retention_days=90)
    api.clock.advance(hours=1)
    contract = {"mode": "contract", "events": 0, "active_integrations": 1, "monthly_quota": 0}
    assert (await usage(tenant))["audience"]["modes"] == [DEMO, contract]


@pytest.mark.parametrize("fault", KINDS)
async def test_codes_are_counted_while_audience_fails(
    database_url: Secret, clock: FakeClock, rival: Rival, fault: str
) -> None:
    async with failing_audience(fault) as url, core_beside(url, database_url, clock) as core, asyncio.timeout(30):
        tenant = await make_tenant(core)
        await tenant.give_cell(rival)
        summary = await usage(tenant)
        assert summary["audience"] == {"status": "unavailable", "modes": []}
        assert summary["codes"] == {"issued": 0, "monthly_quota": 100, "remaining": 100}
