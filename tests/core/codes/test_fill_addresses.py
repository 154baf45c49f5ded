"""Codes of an older release get their addresses from a job, in small steps that a crash does not undo."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.api.core_client import Api
from support.api.core_settings import jobs_settings
from support.codes.lists import list_ids
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.killable import running_worker, until_alone
from support.tenancy.tenant import Tenant, make_second_project, make_tenant

from soundmark.core.context import Context
from soundmark.core.features.codes.codes import jobs
from soundmark.core.store.codes import codes
from soundmark.core.worker import make_job_context
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.transaction import Tx

FORGET = "UPDATE codes SET address = NULL"
UNKNOWN = "SELECT count(*) FROM codes WHERE address IS NULL"
ADDRESSES = "SELECT xr_id, address FROM codes ORDER BY xr_id"


@pytest.fixture
async def ctx(database_url: Secret, clock: FakeClock) -> AsyncIterator[Context]:
    context = make_job_context(jobs_settings(database_url), clock=clock)
    await context.db.open()
    yield context
    await context.db.close()


def intent_at(url: Any) -> dict[str, Any]:
    return {"type": "link", "action": "open", "resource": {"url": url}}


async def make_codes(tenant: Tenant, count: int, url: Any = "https://example.org/") -> None:
    """Issue Codes as this release does."""
    left = count
    while left > 0:
        body = tenant.code_body(count=min(left, 100), intent=intent_at(url))
        assert (await tenant.api.post("/v1/codes/batch", json=body)).status == 201
        left -= 100


async def test_the_job_finds_what_issuing_writes(api: Api, tenant: Tenant, rival: Rival, ctx: Context) -> None:
    """Of every organisation, project, status and kind of address; a second run finds nothing to do."""
    places = [await make_tenant(api), await make_second_project(tenant)]
    for index, url in enumerate(["HTTPS://Example.ORG/Ä?x", "a\0b", "", 7, None, "😀" * 300, {"url": "https://x"}]):
        place = places[index] if index < len(places) else tenant
        code = await place.make_code(intent=intent_at(url))
        if index % 2:
            await place.revoke(code["xr_id"])
    await tenant.make_code(intent={"type": "note", "action": "show", "resource": {}}, lifetime_s=1)
    written = await rival.rows(ADDRESSES)
    api.clock.advance(hours=1)
    await rival.run(FORGET)
    assert await jobs.fill_addresses(ctx) == len(written) == 8
    assert await rival.rows(ADDRESSES) == written
    assert await jobs.fill_addresses(ctx) == 0


async def test_an_old_code_is_found_once_the_job_has_run(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    code = await tenant.make_code()
    await rival.run(FORGET)
    assert await list_ids(tenant, address_prefix="https://example.org") == []
    await jobs.fill_addresses(ctx)
    assert await list_ids(tenant, address_prefix="https://example.org") == [code["xr_id"]]


async def test_an_altered_code_does_not_stop_the_job(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    """Neither one whose payload is no JSON or no payload, nor one whose token is gone."""
    await make_codes(tenant, 7)
    payloads = [b"\xff", b"[]", b'{"intent": {"resource": [7]}}', b"{}", b"[" * 100_000]
    for token, payload in zip(await rival.rows("SELECT token FROM broadcasts"), payloads, strict=False):
        await rival.run("UPDATE broadcasts SET payload = %s WHERE token = %s", payload, *token)
    await rival.run("DELETE FROM broadcasts WHERE token = (SELECT max(token) FROM broadcasts)")
    await rival.run(FORGET)
    assert await jobs.fill_addresses(ctx) == 7
    assert await rival.rows(UNKNOWN) == [(0,)]


@pytest.mark.parametrize("count", [3, 4, 5])
async def test_many_are_filled_in_steps(
    tenant: Tenant, rival: Rival, ctx: Context, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(jobs, "_AT_ONCE", 2)
    await make_codes(tenant, count)
    await rival.run(FORGET)
    assert await jobs.fill_addresses(ctx) == count
    assert await rival.rows(UNKNOWN) == [(0,)]


async def test_what_was_done_before_a_crash_stays(
    tenant: Tenant, rival: Rival, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_codes(tenant, 5)
    await rival.run(FORGET)
    update, calls = codes.update_addresses, []

    async def fail_second(tx: Tx, *args: Any) -> None:
        await update(tx, *args)
        calls.append(args)
        if len(calls) == 2:
            raise DatabaseUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "_AT_ONCE", 2)
        patched.setattr(codes, "update_addresses", fail_second)
        with pytest.raises(DatabaseUnavailable):
            await jobs.fill_addresses(ctx)
    assert await rival.rows(UNKNOWN) == [(3,)]
    assert await jobs.fill_addresses(ctx) == 3


async def test_codes_that_somebody_has_locked_are_left_to_the_next_run(
    tenant: Tenant, rival: Rival, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_AT_ONCE", 2)
    await make_codes(tenant, 5)
    await rival.run(FORGET)
    async with rival.holding("SELECT FROM codes ORDER BY xr_id LIMIT 3 FOR UPDATE"):
        assert await jobs.fill_addresses(ctx) == 2
    assert await jobs.fill_addresses(ctx) == 3


async def test_two_at_once_share_the_work(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    await make_codes(tenant, 5)
    await rival.run(FORGET)
    async with rival.holding("LOCK TABLE codes IN SHARE MODE"):
        first = await rival.while_waiting(jobs.fill_addresses(ctx))
        assert await jobs.fill_addresses(ctx) == 0
    assert await first == 5


async def test_issuing_revoking_and_deleting_go_on_meanwhile(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    """The job holds its Codes; only who changes one of them waits, for one step."""
    await make_codes(tenant, 3)
    await rival.run(FORGET)
    ((first,), (second,), (third,)) = await rival.rows("SELECT xr_id FROM codes ORDER BY xr_id")
    async with rival.holding("LOCK TABLE broadcasts IN ACCESS EXCLUSIVE MODE"):
        filling = await rival.while_waiting(jobs.fill_addresses(ctx))
        revoking = asyncio.create_task(tenant.revoke(first))
        deleting = asyncio.create_task(rival.run("DELETE FROM codes WHERE xr_id = %s", second))
        issuing = asyncio.create_task(tenant.api.post("/v1/codes", json=tenant.code_body()))
        await rival.until_someone_waits(4)
    assert await filling == 3
    assert ((await revoking).json["status"], await deleting, (await issuing).status) == ("revoked", 1, 201)
    assert await rival.rows(UNKNOWN) == [(0,)]
    assert set(await list_ids(tenant, address_prefix="https:")) == {first, third, (await issuing).json["xr_id"]}


async def test_a_code_that_is_deleted_first_is_not_filled(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    await make_codes(tenant, 3)
    await rival.run(FORGET)
    async with rival.committing("DELETE FROM codes"):
        assert await jobs.fill_addresses(ctx) == 0
    assert await jobs.fill_addresses(ctx) == 0


async def test_a_worker_that_is_killed_is_followed_by_another(
    tenant: Tenant, rival: Rival, database_url: Secret, measuring_url: str
) -> None:
    """Its last step is undone, and the next worker begins at once."""
    await tenant.make_quota(rival, 1000)
    await make_codes(tenant, 250)
    await rival.run(FORGET)
    async with rival.holding("LOCK TABLE codes IN SHARE MODE"):
        with running_worker(database_url, measuring_url) as worker:
            await rival.until_someone_waits()
            worker.kill()
            worker.wait(20)
        await rival.kill_waiting_sessions()
    await until_alone(rival)
    assert await rival.rows(UNKNOWN) == [(250,)]
    with running_worker(database_url, measuring_url):
        async with asyncio.timeout(60):
            while await rival.rows(UNKNOWN) != [(0,)]:  # noqa: ASYNC110 - the event happens in PostgreSQL
                await asyncio.sleep(0.05)
