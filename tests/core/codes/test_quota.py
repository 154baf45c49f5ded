"""The monthly quota of Codes: judged in one queue per organisation, and counted with the Codes themselves."""

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp


async def issue(tenant: Tenant, count: int | None = None) -> Answer:
    body = tenant.code_body(expires_at="2999-01-01T00:00:00Z")
    if count is None:
        return await tenant.api.post("/v1/codes", json=body)
    return await tenant.api.post("/v1/codes/batch", json=body | {"count": count})


def at(clock: Any, text: str) -> None:
    clock.freeze()
    clock.frozen_at = datetime.fromisoformat(text)


async def counted(rival: Rival) -> dict[date, int]:
    return dict(await rival.rows("SELECT day, issued_count FROM code_usage_days"))


async def test_a_new_organisation_may_issue_a_hundred_codes_a_month(tenant: Tenant, rival: Rival) -> None:
    assert (await issue(tenant, 100)).status == 201
    for count in (None, 1):
        answer = await issue(tenant, count)
        assert (answer.status, answer.code) == (429, "quota_exceeded")
    assert len(await rival.rows("SELECT 1 FROM codes")) == 100


async def test_an_issuance_says_what_is_left(tenant: Tenant) -> None:
    at(tenant.api.clock, "2026-11-30T23:00:00+00:00")
    headers = (await issue(tenant, 12)).headers
    assert headers["ratelimit-policy"] == '"codes";q=100'
    assert headers["ratelimit"] == '"codes";r=88;t=3600'
    assert (await issue(tenant)).headers["ratelimit"] == '"codes";r=87;t=3600'


async def test_a_refusal_says_when_to_retry(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_quota(rival, 3)
    at(tenant.api.clock, "2026-11-30T23:59:58.250+00:00")
    assert (await issue(tenant, 2)).status == 201
    answer = await issue(tenant, 2)
    assert (answer.status, answer.code) == (429, "quota_exceeded")
    assert answer.headers["retry-after"] == "2"
    assert answer.headers["ratelimit-policy"] == '"codes";q=3'
    assert answer.headers["ratelimit"] == '"codes";r=1;t=2'


async def test_a_month_begins_with_a_whole_quota(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_quota(rival, 1)
    at(tenant.api.clock, "2026-12-31T23:59:59.999+00:00")
    assert (await issue(tenant)).status == 201
    assert (await issue(tenant)).code == "quota_exceeded"
    at(tenant.api.clock, "2027-01-01T00:00:00+00:00")
    assert (await issue(tenant)).status == 201
    assert await counted(rival) == {date(2026, 12, 31): 1, date(2027, 1, 1): 1}


async def test_the_month_is_judged_after_the_wait(tenant: Tenant, rival: Rival) -> None:
    """A request that waited past midnight belongs to the new month."""
    await tenant.make_quota(rival, 1)
    at(tenant.api.clock, "2026-11-30T23:59:59+00:00")
    assert (await issue(tenant)).status == 201
    async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
        issuing = await rival.while_waiting(issue(tenant))
        at(tenant.api.clock, "2026-12-01T00:00:00+00:00")
    assert (await issuing).json["issued_at"] == "2026-12-01T00:00:00.000Z"
    assert await counted(rival) == {date(2026, 11, 30): 1, date(2026, 12, 1): 1}


async def test_of_forty_at_once_for_the_last_one_exactly_one_succeeds(
    tenant: Tenant, database_url: Secret, rival: Rival
) -> None:
    """At two Core processes, each of which batches its requests."""
    await tenant.make_quota(rival, 4)
    assert (await issue(tenant, 3)).status == 201
    async with running_core(core_settings(database_url), tenant.api.clock) as other:
        elsewhere = replace(tenant, api=other)
        answers = await asyncio.gather(*(issue(where) for _ in range(20) for where in (tenant, elsewhere)))
    assert sorted(answer.status for answer in answers) == [201, *[429] * 39]
    assert {answer.code for answer in answers if answer.status == 429} == {"quota_exceeded"}
    assert len(await rival.rows("SELECT 1 FROM codes")) == 4


async def test_a_waiting_issuance_sees_what_was_issued_meanwhile(tenant: Tenant, rival: Rival) -> None:
    """The count is read after the lock: the waiting statement itself still sees the old rows."""
    await tenant.make_quota(rival, 1)
    async with rival.committing("SELECT 1 FROM code_entitlements FOR UPDATE"):
        issuing = await rival.while_waiting(issue(tenant))
        await rival.run(
            "INSERT INTO code_usage_days VALUES (%s, %s, 1)", tenant.organization_id, tenant.api.clock.now().date()
        )
    assert (await issuing).code == "quota_exceeded"


async def test_organisations_do_not_wait_for_each_other(tenant: Tenant, api: Api, rival: Rival) -> None:
    other = await make_tenant(api)
    lock = "SELECT 1 FROM code_entitlements WHERE organization_id = %s FOR UPDATE"
    async with rival.holding(lock, tenant.organization_id):
        assert (await issue(other)).status == 201


async def test_a_revoked_code_stays_counted(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_quota(rival, 1)
    await tenant.revoke((await issue(tenant)).json["xr_id"])
    assert (await issue(tenant)).code == "quota_exceeded"


async def test_a_plan_that_shrinks_below_what_was_issued_leaves_nothing(tenant: Tenant, rival: Rival) -> None:
    assert (await issue(tenant, 5)).status == 201
    await tenant.make_quota(rival, 2)
    answer = await issue(tenant)
    assert answer.headers["ratelimit"].startswith('"codes";r=0;')
    assert answer.code == "quota_exceeded"


ACTS = st.lists(
    st.sampled_from(["single", "batch of 3", "batch of 60", "revoke", "an hour passes", "a day passes", "recover"]),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=st.lists(ACTS, min_size=1, max_size=3))
async def test_the_count_equals_the_stored_codes(api: Api, rival: Rival, rounds: list[list[str]]) -> None:
    """After any interleaving, for several organisations and the days of several months."""
    at(api.clock, "2026-11-29T22:30:00+00:00")
    tenants = [await make_tenant(api) for _ in rounds]
    await asyncio.gather(*(_act(tenant, acts) for tenant, acts in zip(tenants, rounds, strict=True)))
    stored = await rival.rows(
        "SELECT organization_id, (issued_at AT TIME ZONE 'UTC')::date, count(*) FROM codes GROUP BY 1, 2 ORDER BY 1, 2"
    )
    days = await rival.rows("SELECT organization_id, day, issued_count FROM code_usage_days ORDER BY 1, 2")
    assert days == stored
    for tenant in tenants:
        for month in ("2026-11", "2026-12"):
            of_month = [count for who, day, count in days if who == tenant.organization_id and f"{day:%Y-%m}" == month]
            assert sum(of_month) <= 100


async def _act(tenant: Tenant, acts: list[str]) -> None:
    codes: list[str] = []
    body = tenant.code_body(expires_at="2999-01-01T00:00:00Z")
    headers = {"Idempotency-Key": "k" * 16}
    for act in acts:
        match act.split():
            case ["single"]:
                answer = await tenant.api.post("/v1/codes", json=body, headers=headers if not codes else {})
                codes += [answer.json["xr_id"]] if answer.status == 201 else []
            case ["batch", "of", count]:
                await issue(tenant, int(count))
            case ["revoke"] if codes:
                await tenant.revoke(codes[-1])
            case ["recover"]:
                await tenant.api.post("/v1/codes/recover", json=body, headers=headers)
            case ["an", "hour", *_]:
                tenant.api.clock.shift += timedelta(hours=1)
            case ["a", "day", *_]:
                tenant.api.clock.shift += timedelta(days=1)
            case _:
                assert act == "revoke", act


async def test_the_answer_names_the_time_of_the_count(tenant: Tenant, rival: Rival) -> None:
    code = (await issue(tenant)).json
    (day,) = await counted(rival)
    assert code["issued_at"].startswith(format_timestamp(datetime.combine(day, datetime.min.time(), UTC))[:10])
