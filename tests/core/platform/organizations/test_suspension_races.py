"""Suspending while others issue and resolve: from the answer on, nothing succeeds, on any process."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.suspension import restore, suspend
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret

ACTORS, AFTER = 6, 5
HOLD = "SELECT FROM organizations FOR SHARE"


@pytest.fixture
async def elsewhere(tenant: Tenant, database_url: Secret, clock: FakeClock) -> AsyncIterator[Tenant]:
    """The same tenant at another process of Core."""
    async with running_core(core_settings(database_url), clock) as api:
        yield replace(tenant, api=api)


async def test_no_resolution_begun_after_the_answer_returns_an_intent(tenant: Tenant, elsewhere: Tenant) -> None:
    code = await tenant.make_code()
    before: list[int] = []
    after: list[int] = []
    is_over, is_raging = asyncio.Event(), asyncio.Event()

    async def ask(place: Tenant) -> None:
        left = AFTER
        while left:
            is_after = is_over.is_set()
            (after if is_after else before).append((await place.api.resolve(code["broadcast_token"])).status)
            left -= is_after
            if len(before) >= 2 * ACTORS:
                is_raging.set()

    asking = [asyncio.create_task(ask(place)) for place in (tenant, elsewhere) for _ in range(ACTORS)]
    await is_raging.wait()
    answer = await suspend(tenant.api, tenant.organization_id)
    is_over.set()
    await asyncio.gather(*asking)
    assert answer.status == 200
    assert set(before) <= {200, 404, 429}
    assert 200 in before
    assert set(after) <= {404, 429}


async def test_a_suspension_waits_for_an_issuance_that_was_first(tenant: Tenant, rival: Rival) -> None:
    """What was issued before the answer does not resolve after it."""
    async with rival.holding("LOCK TABLE codes IN SHARE MODE"):
        issuing = await rival.while_waiting(tenant.api.post("/v1/codes", json=tenant.code_body()))
        suspending = asyncio.create_task(suspend(tenant.api, tenant.organization_id))
        await rival.until_someone_waits(2)
    issued, suspended = await issuing, await suspending
    assert (issued.status, suspended.status) == (201, 200)
    assert (await tenant.api.resolve(issued.json["broadcast_token"])).status == 404


@pytest.mark.parametrize("path", ["/v1/codes", "/v1/codes/batch"])
async def test_an_issuance_that_waits_for_a_suspension_is_refused(tenant: Tenant, rival: Rival, path: str) -> None:
    """It began before the answer, and its commit would come after it."""
    body = tenant.code_body(**({} if path == "/v1/codes" else {"count": 3}))
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        suspending = await rival.while_waiting(suspend(tenant.api, tenant.organization_id))
        issuing = asyncio.create_task(tenant.api.post(path, json=body))
        await rival.until_someone_waits(2)
    assert (await suspending).status == 200
    refused = await issuing
    assert (refused.status, refused.code) == (403, "organization_suspended")
    assert await rival.rows("SELECT FROM codes") == []


async def test_an_addition_that_waits_for_a_suspension_is_refused(tenant: Tenant, rival: Rival) -> None:
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        suspending = await rival.while_waiting(suspend(tenant.api, tenant.organization_id))
        adding = asyncio.create_task(tenant.api.post("/v1/campaigns", json=tenant.campaign_body()))
        await rival.until_someone_waits(2)
    assert (await suspending).status == 200
    assert (await adding).code == "organization_suspended"


async def test_two_suspensions_at_once_are_one(tenant: Tenant, rival: Rival) -> None:
    async with rival.holding(HOLD):
        both = [asyncio.create_task(suspend(tenant.api, tenant.organization_id)) for _ in range(2)]
        await rival.until_someone_waits(2)
    first, second = [await one for one in both]
    assert first.json == second.json
    assert len(await rival.audited("organization.suspended")) == 1


async def test_of_a_suspension_and_a_restoration_the_later_holds(tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    async with rival.holding(HOLD):
        suspending = await rival.while_waiting(suspend(tenant.api, tenant.organization_id))
        restoring = asyncio.create_task(restore(tenant.api, tenant.organization_id))
        await rival.until_someone_waits(2)
    await asyncio.gather(suspending, restoring)
    ((is_suspended, is_listed),) = await rival.rows(
        "SELECT suspended_at IS NOT NULL, EXISTS (SELECT FROM suspended_organizations) FROM organizations"
    )
    assert is_suspended == is_listed
    expected = 404 if is_suspended else 200
    assert (await tenant.api.resolve(code["broadcast_token"])).status == expected
