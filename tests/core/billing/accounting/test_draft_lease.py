"""The time of a draft invoice: pauses between attempts, the lease of a worker, and the end after a day."""

import asyncio
import datetime as dt

import pytest
from structlog.testing import capture_logs
from support.database.rival import Rival
from support.outside.accounting import delete_invoice, list_invoices, list_operations
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock

from soundmark.core.context import Context
from soundmark.core.domain.billing.accounting import ATTEMPT_MAX, LEASE, TRIED_FOR
from soundmark.core.features.billing.accounting import jobs
from soundmark.core.providers.dolibarr import client

from .conftest import Customer


async def test_a_draft_is_tried_for_a_day_and_then_fails(
    customer: Customer, ctx: Context, books: RunningSandbox, clock: FakeClock
) -> None:
    began_at = clock.freeze()
    outbox_id = await customer.draft(ctx)
    await books.misbehave("accounting", "html", operation="find_invoices", times=0)
    again_at: dt.datetime | None = began_at
    pauses = []
    for _ in range(100):
        again_at = await customer.work(ctx, outbox_id)
        if again_at is None:
            break
        pauses.append((again_at - clock.now()).total_seconds())
        clock.advance(seconds=pauses[-1], milliseconds=-1)
        assert await customer.work(ctx, outbox_id) == again_at, "too early"
        clock.advance(milliseconds=1)
    assert pauses[:8] == [30, 60, 120, 240, 480, 960, 1920, 3600]
    assert set(pauses[7:]) == {3600}
    assert TRIED_FOR - dt.timedelta(hours=1) <= clock.now() - began_at <= TRIED_FOR
    assert await customer.read(outbox_id) == ("failed", len(pauses) + 1, None)
    assert await list_operations(books) == ["find_invoices"] * (len(pauses) + 1)


async def test_an_accounting_system_that_hangs_is_left_before_the_lease_ends(
    customer: Customer, ctx: Context, books: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ATTEMPT_MAX.total_seconds() > 5 * client._TIMEOUT_S
    monkeypatch.setattr(client, "_TIMEOUT_S", 0.2)
    await books.hold("accounting", times=2)
    outbox_id = await customer.draft(ctx)
    with capture_logs() as logs:
        assert await customer.work(ctx, outbox_id) is not None
    assert logs[-1]["reason"] == "deadline"
    monkeypatch.setattr(client, "_TIMEOUT_S", 60)
    monkeypatch.setattr(jobs, "ATTEMPT_MAX", dt.timedelta(seconds=0.2))
    customer.tenant.api.clock.advance(seconds=30)
    with capture_logs() as logs:
        assert await customer.work(ctx, outbox_id) is not None
    assert logs[-1]["reason"] == "TimeoutError"


async def test_nothing_is_posted_after_the_lease(
    customer: Customer, ctx: Context, books: RunningSandbox, clock: FakeClock
) -> None:
    """The worker's machine slept: another worker may be at the draft already."""
    outbox_id = await customer.draft(ctx)
    await books.hold("accounting", "find_invoices")
    working = asyncio.create_task(customer.work(ctx, outbox_id))
    await books.until_held("accounting")
    clock.advance(seconds=LEASE.total_seconds())
    assert await customer.read(outbox_id) == ("processing", 1, None)
    assert await customer.work(ctx, outbox_id) is None
    await books.release("accounting")
    assert await working is None
    assert (await list_operations(books)).count("create_invoice") == 1
    assert await customer.read(outbox_id) == ("completed", 2, 1)


async def test_a_result_that_comes_too_late_changes_nothing(
    customer: Customer, ctx: Context, books: RunningSandbox, clock: FakeClock
) -> None:
    outbox_id = await customer.draft(ctx)
    await books.hold("accounting", "create_invoice")
    working = asyncio.create_task(customer.work(ctx, outbox_id))
    await books.until_held("accounting")
    clock.advance(seconds=LEASE.total_seconds())
    assert await customer.work(ctx, outbox_id) is None
    await delete_invoice(books)
    await books.release("accounting")
    assert await working is None
    assert await customer.read(outbox_id) == ("completed", 2, 1)


async def test_a_worker_that_dies_at_every_attempt_ends_after_a_day(
    customer: Customer, ctx: Context, books: RunningSandbox, rival: Rival, clock: FakeClock
) -> None:
    outbox_id = await customer.draft(ctx)
    await rival.run("UPDATE accounting_outbox SET status = 'processing', attempts = 9")
    clock.advance(days=1)
    with capture_logs() as logs:
        assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("failed", 9, None)
    assert (logs[-1]["event"], logs[-1]["reason"]) == ("draft_invoice_failed", "worker_killed")
    assert await list_operations(books) == []


async def test_a_worker_that_was_off_for_days_still_tries(
    customer: Customer, ctx: Context, books: RunningSandbox, clock: FakeClock
) -> None:
    outbox_id = await customer.draft(ctx)
    clock.advance(days=3)
    assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("completed", 1, 1)
    assert len(await list_invoices(books)) == 1


@pytest.mark.parametrize("operation", ["find_invoices", "create_invoice"])
async def test_an_organisation_that_is_deleted_while_its_invoice_is_made(
    customer: Customer, ctx: Context, books: RunningSandbox, operation: str, rival: Rival
) -> None:
    """Neither waits for the other, and nothing of the organisation comes back."""
    outbox_id = await customer.draft(ctx)
    await books.hold("accounting", operation)
    working = asyncio.create_task(customer.work(ctx, outbox_id))
    await books.until_held("accounting")
    organization_id = customer.tenant.organization_id
    # A live subscription of a provider may keep an organisation from being deleted.
    await rival.run("UPDATE subscriptions SET status = 'expired'")
    body = {"confirmation": organization_id}
    assert (await customer.tenant.api.call("DELETE", f"/v1/organizations/{organization_id}", json=body)).status == 204
    await books.release("accounting")
    with capture_logs() as logs:
        assert await working is None
    assert (logs[-1]["status"], logs[-1]["is_recorded"]) == ("completed", False)
    assert await rival.rows("SELECT count(*) FROM accounting_outbox") == [(0,)]
    assert await customer.work(ctx, outbox_id) is None
    assert len(await list_invoices(books)) == 1
