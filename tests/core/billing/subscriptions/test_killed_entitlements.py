"""Workers that are killed while they carry an entitlement to Audience, or end a subscription; the next one does it."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from support.billing.subscriptions import Buyer
from support.database.rival import Rival
from support.processes.killable import JOBS, RUN, Killable, until_alone

TASK = "project_entitlement"
CARRYING = JOBS.format(TASK)


@pytest.fixture
async def granted(buyer: Buyer) -> Buyer:
    """Somebody with a contract that a job is to carry to Audience."""
    assert (await buyer.put_contract("C-1")).status == 200
    return buyer


@pytest.fixture
async def carried_once(rival: Rival, measuring: Rival, killable: Killable) -> AsyncIterator[None]:
    """After the test, which kills a worker, another worker carries the entitlement, and Audience has it once."""
    yield
    await until_alone(rival)
    assert await rival.rows(CARRYING) == [("doing",)]
    await killable.finish_job(rival, TASK)
    rows = await measuring.rows("SELECT mode, monthly_event_quota, ends_at, revision FROM entitlements")
    assert rows == [("contract", 5000, None, 1)]


@pytest.mark.usefixtures("granted", "carried_once")
async def test_a_worker_that_is_killed_before_it_has_read_an_entitlement(rival: Rival, killable: Killable) -> None:
    lock = "LOCK TABLE audience_entitlements IN ACCESS EXCLUSIVE MODE"
    async with rival.holding(lock), killable.worker() as worker:
        await rival.until_rows(CARRYING, ("doing",))
        await rival.until_someone_waits()
        worker.kill()


@pytest.mark.usefixtures("granted", "carried_once")
async def test_a_worker_that_is_killed_before_audience_has_stored_an_entitlement(
    measuring: Rival, killable: Killable
) -> None:
    async with measuring.holding("LOCK TABLE entitlements IN EXCLUSIVE MODE"), killable.worker() as worker:
        await measuring.until_someone_waits()
        worker.kill()


@pytest.mark.usefixtures("granted")
async def test_a_worker_that_is_killed_before_its_job_has_ended(
    rival: Rival, measuring: Rival, killable: Killable
) -> None:
    """The server executes a statement whose sender died, so the job may have ended all the same."""
    async with contextlib.AsyncExitStack() as dying, measuring.holding("LOCK TABLE entitlements IN EXCLUSIVE MODE"):
        worker = await dying.enter_async_context(killable.worker())
        await measuring.until_someone_waits()
        await dying.enter_async_context(worker.dying_while(rival, "SELECT FROM procrastinate_jobs FOR UPDATE"))
    await until_alone(rival)
    if await rival.rows(CARRYING) == [("doing",)]:
        await killable.finish_job(rival, TASK)
    assert await rival.rows(CARRYING) == [("succeeded",)]
    rows = await measuring.rows("SELECT mode, monthly_event_quota, ends_at, revision FROM entitlements")
    assert rows == [("contract", 5000, None, 1)]


async def test_a_worker_that_is_killed_while_it_ends_a_subscription(
    buyer: Buyer, rival: Rival, killable: Killable
) -> None:
    await buyer.buy_prepaid()
    await rival.run("UPDATE subscriptions SET paid_through = '2020-01-01', created_at = '2019-12-01'")
    async with killable.worker() as worker, worker.dying_while(rival, "SELECT FROM subscriptions FOR UPDATE"):
        await rival.run(RUN, "end_subscriptions")
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]
    before = await rival.audited("billing.entitlement_changed")
    await rival.run("DELETE FROM procrastinate_jobs")

    async with killable.worker():
        await rival.run(RUN, "end_subscriptions")
        await rival.until_found("SELECT 1 FROM subscriptions WHERE status = 'expired'")

    assert len(await rival.audited("billing.entitlement_changed")) == len(before) + 1
