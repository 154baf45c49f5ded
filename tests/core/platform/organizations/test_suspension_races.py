"""Suspending while others issue and resolve: from the answer on, nothing succeeds, on any process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2
import pytest
from support.api.core_client import PROOF
from support.database.rival import Rival
from support.processes.killable import OPERATOR, Killable
from support.tenancy.suspension import restore, suspend
from support.tenancy.tenant import Tenant

ACTORS, AFTER = 6, 5
HOLD = "SELECT FROM organizations FOR SHARE"
Act = Callable[[], Awaitable[int]]


@pytest.fixture
async def elsewhere(killable: Killable) -> AsyncIterator[httpx2.AsyncClient]:
    """The operator's client of a Core in a process of its own; the shared Core runs in this one."""
    limits = dict.fromkeys(("resolve_rate_limit", "refusal_rate_limit"), "1000000")
    headers = {**OPERATOR, **PROOF}
    async with (
        killable.core(**limits) as core,
        httpx2.AsyncClient(base_url=core.url, headers=headers, timeout=60) as client,
    ):
        yield client


async def race(tenant: Tenant, *acts: Act) -> list[tuple[list[int], list[int]]]:
    """Have several actors repeat each act while the organisation is suspended, and a few times afterwards.

    Return the statuses of each act: of what began before the answer to the suspension, and of what began after it.
    """
    statuses: list[tuple[list[int], list[int]]] = [([], []) for _ in acts]
    is_raging, is_over = asyncio.Event(), asyncio.Event()

    async def repeat(act: Act, before: list[int], after: list[int]) -> None:
        left = AFTER
        while left:
            is_after = is_over.is_set()
            (after if is_after else before).append(await act())
            left -= is_after
            if all(len(began) >= ACTORS for began, _ in statuses):
                is_raging.set()

    acting = [
        asyncio.create_task(repeat(act, *lists))
        for act, lists in zip(acts, statuses, strict=True)
        for _ in range(ACTORS)
    ]
    await is_raging.wait()
    assert (await suspend(tenant.api, tenant.organization_id)).status == 200
    is_over.set()
    await asyncio.gather(*acting)
    return statuses


async def test_no_resolution_begun_after_the_answer_returns_an_intent(
    tenant: Tenant, elsewhere: httpx2.AsyncClient
) -> None:
    token = (await tenant.make_code())["broadcast_token"]

    async def resolve_here() -> int:
        return (await tenant.api.resolve(token)).status

    async def resolve_there() -> int:
        return (await elsewhere.get(f"/v1/resolve/{token}")).status_code

    for before, after in await race(tenant, resolve_here, resolve_there):
        assert 200 in before
        assert set(before) <= {200, 404}
        assert after == [404] * (ACTORS * AFTER)


async def test_no_issuance_begun_after_the_answer_succeeds_and_no_code_of_before_resolves(
    tenant: Tenant, elsewhere: httpx2.AsyncClient, rival: Rival
) -> None:
    await tenant.make_quota(rival, 100_000)

    async def issue_here() -> int:
        return (await tenant.api.post("/v1/codes", json=tenant.code_body())).status

    async def issue_there() -> int:
        return (await elsewhere.post("/v1/codes", json=tenant.code_body())).status_code

    issued_count = 0
    for before, after in await race(tenant, issue_here, issue_there):
        assert 201 in before
        assert set(before) <= {201, 403}
        assert after == [403] * (ACTORS * AFTER)
        issued_count += before.count(201)
    tokens = [token for (token,) in await rival.rows("SELECT token FROM broadcasts")]
    assert len(tokens) == issued_count
    for token in tokens:
        assert (await tenant.api.resolve(token)).status == 404
        assert (await elsewhere.get(f"/v1/resolve/{token}")).status_code == 404


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
