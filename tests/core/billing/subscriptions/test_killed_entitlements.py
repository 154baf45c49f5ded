"""Workers that are killed while they carry an entitlement to Audience, or end a subscription; the next one does it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from support.billing.subscriptions import Buyer
from support.database.rival import Rival
from support.processes.killable import running_worker, until_alone

from soundmark.kit.crypto.secret import Secret

JOBS = "SELECT status::text FROM procrastinate_jobs WHERE args ->> 'organization_id' = %s"
# As a minute later: the heartbeat of the killed worker is old, and the job that looks for such jobs is due.
A_MINUTE_LATER = "UPDATE procrastinate_workers SET last_heartbeat = last_heartbeat - interval '1 minute'"
RUN = "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES ('default', %s, '{\"timestamp\": 0}')"


async def until_found(rival: Rival, statement: str, *params: str) -> None:
    async with asyncio.timeout(60):
        while not await rival.rows(statement, *params):  # noqa: ASYNC110 - in PostgreSQL
            await asyncio.sleep(0.01)


@pytest.fixture
async def granted(buyer: Buyer) -> Buyer:
    """Somebody with a contract that a job is to carry to Audience."""
    assert (await buyer.put_contract("C-1")).status == 200
    return buyer


@pytest.fixture
async def carried_once(
    granted: Buyer, rival: Rival, measuring: Rival, database_url: Secret, measuring_url: str
) -> AsyncIterator[None]:
    """After the test, which kills a worker, another worker carries the entitlement, and Audience has it once."""
    yield
    await until_alone(rival)
    assert await rival.rows(JOBS, granted.organization_id) == [("doing",)]
    await rival.run(A_MINUTE_LATER)
    with running_worker(database_url, measuring_url):
        await rival.run(RUN, "retry_stalled_jobs")
        await until_found(rival, f"{JOBS} AND status = 'succeeded'", granted.organization_id)
    assert await rival.rows(JOBS, granted.organization_id) == [("succeeded",)]
    rows = await measuring.rows("SELECT mode, monthly_event_quota, ends_at, revision FROM entitlements")
    assert rows == [("contract", 5000, None, 1)]


@pytest.mark.usefixtures("carried_once")
async def test_a_worker_that_is_killed_before_it_has_read_an_entitlement(
    granted: Buyer, rival: Rival, database_url: Secret, measuring_url: str
) -> None:
    async with rival.holding("LOCK TABLE audience_entitlements IN ACCESS EXCLUSIVE MODE"):
        with running_worker(database_url, measuring_url) as worker:
            await until_found(rival, f"{JOBS} AND status = 'doing'", granted.organization_id)
            await rival.until_someone_waits()
            worker.kill()
            worker.wait()


@pytest.mark.usefixtures("carried_once")
async def test_a_worker_that_is_killed_before_audience_has_stored_an_entitlement(
    measuring: Rival, database_url: Secret, measuring_url: str
) -> None:
    async with measuring.holding("LOCK TABLE entitlements IN EXCLUSIVE MODE"):
        with running_worker(database_url, measuring_url) as worker:
            await measuring.until_someone_waits()
            worker.kill()
            worker.wait()


@pytest.mark.usefixtures("carried_once")
async def test_a_worker_that_is_killed_before_its_job_has_ended(
    rival: Rival, measuring: Rival, database_url: Secret, measuring_url: str
) -> None:
    async with contextlib.AsyncExitStack() as held:
        with running_worker(database_url, measuring_url) as worker:
            async with measuring.holding("LOCK TABLE entitlements IN EXCLUSIVE MODE"):
                await measuring.until_someone_waits()
                await held.enter_async_context(rival.holding("SELECT FROM procrastinate_jobs FOR UPDATE"))
            await rival.until_someone_waits()
            worker.kill()
            worker.wait()


async def test_a_worker_that_is_killed_while_it_ends_a_subscription(
    buyer: Buyer, rival: Rival, database_url: Secret, measuring_url: str
) -> None:
    await buyer.buy_prepaid()
    await rival.run("UPDATE subscriptions SET paid_through = '2020-01-01', created_at = '2019-12-01'")
    with running_worker(database_url, measuring_url) as worker:
        async with rival.holding("SELECT FROM subscriptions FOR UPDATE"):
            await rival.run(RUN, "end_subscriptions")
            await rival.until_someone_waits()
            worker.kill()
            worker.wait()
    await until_alone(rival)
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]
    before = await rival.audited("billing.entitlement_changed")
    await rival.run("DELETE FROM procrastinate_jobs")

    with running_worker(database_url, measuring_url):
        await rival.run(RUN, "end_subscriptions")
        await until_found(rival, "SELECT 1 FROM subscriptions WHERE status = 'expired'")

    assert len(await rival.audited("billing.entitlement_changed")) == len(before) + 1
