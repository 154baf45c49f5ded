"""`soundmark platform entitle --monthly-codes`: an organisation's own quota, in place of the Starter plan's."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp

from .conftest import Done, run

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
async def tenant(api: Api) -> Tenant:
    """An organisation with one project."""
    return await make_tenant(api)


@pytest.fixture
def settings(database_url: Secret) -> dict[str, str]:
    """The settings of the commands under test."""
    return {"CORE_DATABASE_URL": database_url.reveal()}


async def entitle(settings: dict[str, str], tenant: Tenant, *more: str) -> Done:
    return await asyncio.to_thread(run, "platform", "entitle", tenant.organization_id, *more, settings=settings)


async def allow(settings: dict[str, str], tenant: Tenant, count: int, *more: str) -> None:
    done = await entitle(settings, tenant, "--monthly-codes", str(count), *more)
    assert done.status == 0, done


async def issue(tenant: Tenant, count: int = 1) -> Answer:
    body = tenant.code_body(expires_at="2999-01-01T00:00:00Z") | {"count": count}
    return await tenant.api.post("/v1/codes/batch", json=body)


async def codes_usage(tenant: Tenant) -> dict[str, Any]:
    answer = await tenant.api.get("/v1/usage", params=tenant.query)
    usage: dict[str, Any] = answer.json["codes"]
    return usage


async def floors(rival: Rival) -> list[tuple[object, ...]]:
    return await rival.rows("SELECT floor_monthly_quota, floor_ends_at FROM code_entitlements")


async def test_it_applies_to_issuance_usage_and_headers_at_once(tenant: Tenant, settings: dict[str, str]) -> None:
    done = await entitle(settings, tenant, "--monthly-codes", "201")
    assert (done.status, done.out) == (
        0,
        f"{tenant.organization_id} can issue 201 Codes a month, without an end date\n",
    )
    assert await codes_usage(tenant) == {"issued": 0, "monthly_quota": 201, "remaining": 201}
    answers = [await issue(tenant, count) for count in (100, 100, 1)]
    assert [answer.status for answer in answers] == [201, 201, 201]
    assert answers[-1].headers["ratelimit-policy"] == '"codes";q=201'
    assert answers[-1].headers["ratelimit"].startswith('"codes";r=0;')
    refused = await issue(tenant)
    assert (refused.code, refused.headers["ratelimit-policy"]) == ("quota_exceeded", '"codes";q=201')
    assert await codes_usage(tenant) == {"issued": 201, "monthly_quota": 201, "remaining": 0}


async def test_it_ends_at_its_time_and_starter_applies_again(tenant: Tenant, settings: dict[str, str]) -> None:
    tenant.api.clock.freeze()
    tenant.api.clock.frozen_at = NOW
    end = NOW + timedelta(hours=1)
    done = await entitle(settings, tenant, "--monthly-codes", "5", "--until", end.isoformat())
    assert done.out.endswith(f"5 Codes a month, until {format_timestamp(end)}\n")
    assert (await codes_usage(tenant))["monthly_quota"] == 5
    tenant.api.clock.frozen_at = end - timedelta(milliseconds=1)
    assert (await issue(tenant)).headers["ratelimit-policy"] == '"codes";q=5'
    tenant.api.clock.frozen_at = end
    assert (await issue(tenant)).headers["ratelimit-policy"] == '"codes";q=100'
    assert (await codes_usage(tenant))["monthly_quota"] == 100


async def test_the_audit_log_names_each_change(tenant: Tenant, rival: Rival, settings: dict[str, str]) -> None:
    await allow(settings, tenant, 5000, "--until", "2099-01-01T01:00:00+01:00")
    await allow(settings, tenant, 0)
    first = {"product": "codes", "monthly_code_quota": 5000, "ends_at": "2099-01-01T00:00:00.000Z"}
    second = {"product": "codes", "monthly_code_quota": 0, "ends_at": None}
    assert await rival.audited("billing.entitlement_changed") == [
        ("platform operator", None, first),
        ("platform operator", None, second),
    ]
    assert await floors(rival) == [(0, None)]


async def test_codes_and_audience_come_with_one_commit(tenant: Tenant, rival: Rival, settings: dict[str, str]) -> None:
    given = ("--monthly-codes", "300", "--mode", "contract", "--monthly-events", "5000")
    async with rival.holding("LOCK TABLE audience_entitlements IN SHARE MODE"):
        entitling = await rival.while_waiting(entitle(settings, tenant, *given))
        assert (await codes_usage(tenant))["monthly_quota"] == 100
    assert (await entitling).out == (
        f"{tenant.organization_id} can issue 300 Codes a month, without an end date\n"
        f"{tenant.organization_id} can measure 5000 events a month as contract, without an end date\n"
    )
    assert (await codes_usage(tenant))["monthly_quota"] == 300
    products = [metadata["product"] for _, _, metadata in await rival.audited("billing.entitlement_changed")]
    assert products == ["codes", "audience"]


@pytest.mark.parametrize(
    "wrong",
    [
        ("--monthly-codes", "-1"),
        ("--monthly-codes", "5", "--mode", "contract"),
        ("--monthly-codes", "5", "--monthly-events", "5"),
        ("--until", "2099-01-01T00:00:00Z"),
    ],
    ids=str,
)
async def test_wrong_usage_changes_nothing(
    tenant: Tenant, rival: Rival, settings: dict[str, str], wrong: tuple[str, ...]
) -> None:
    assert (await entitle(settings, tenant, *wrong)).status == 2
    assert await floors(rival) == [(None, None)]


async def test_an_issuance_that_waits_while_it_is_lowered_uses_the_new_quota(tenant: Tenant, rival: Rival) -> None:
    """The quota is read together with the lock, not before the wait."""
    async with rival.committing("UPDATE code_entitlements SET floor_monthly_quota = 1"):
        issuing = await rival.while_waiting(issue(tenant, 2))
    refused = await issuing
    assert (refused.code, refused.headers["ratelimit-policy"]) == ("quota_exceeded", '"codes";q=1')


async def test_lowering_it_during_issuances_leaves_no_code_beyond_it(
    tenant: Tenant, rival: Rival, database_url: Secret, settings: dict[str, str]
) -> None:
    """Forty at two Core processes, and the operator among them: each is judged by the quota before or after."""
    async with running_core(core_settings(database_url), tenant.api.clock) as other:
        elsewhere = replace(tenant, api=other)
        async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
            first = await rival.while_waiting(issue(tenant))
            lowering = asyncio.create_task(entitle(settings, tenant, "--monthly-codes", "4"))
            await rival.until_someone_waits(2)
            rest = [asyncio.create_task(issue(where)) for _ in range(20) for where in (tenant, elsewhere)]
        answers = [await first, *await asyncio.gather(*rest)]
    assert (await lowering).status == 0
    by_policy: dict[str, list[int]] = {}
    for answer in answers:
        by_policy.setdefault(answer.headers["ratelimit-policy"], []).append(answer.status)
    before, after = by_policy.get('"codes";q=100', []), by_policy.get('"codes";q=4', [])
    assert len(before) + len(after) == 41
    assert set(before) <= {201}
    assert after.count(201) == max(0, min(4 - len(before), len(after)))
    stored = len(await rival.rows("SELECT 1 FROM codes"))
    assert stored == len(before) + after.count(201)
    assert await codes_usage(tenant) == {"issued": stored, "monthly_quota": 4, "remaining": max(0, 4 - stored)}
