"""Workers that are killed in each phase of a draft invoice; there is never a second invoice.

A worker is killed while it waits for an answer of the accounting system, or for a lock of the test's own.
"""

import re

import pytest
from support.database.rival import Rival
from support.outside.accounting import list_invoices
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.killable import Killable

from soundmark.core.context import Context
from soundmark.core.domain.billing.accounting import LEASE
from soundmark.core.features.billing.accounting import jobs

from .conftest import Customer, environ_of

# How many invoices there are when the worker is killed after a phase.
INVOICES_AFTER = {"1": 0, "2": 0, "3": 1, "4": 1, "5": 1}


def test_every_phase_has_a_case() -> None:
    assert re.findall(r"^    (\d)\. ", jobs.make_draft.__doc__ or "", re.MULTILINE) == sorted(INVOICES_AFTER)


@pytest.mark.parametrize("phase", ["1", "2", "3"])
async def test_a_worker_that_is_killed_while_the_accounting_system_answers(
    customer: Customer,
    ctx: Context,
    books: RunningSandbox,
    clock: FakeClock,
    killable: Killable,
    phase: str,
) -> None:
    outbox_id = await customer.draft(ctx)
    await books.hold("accounting", "find_invoices")
    async with killable.worker(**environ_of(books)) as worker:
        await books.until_held("accounting")
        if phase != "1":
            await books.control("/accounting/settings", module_on=phase != "2")  # In phase 2 the post has no effect.
            await books.hold("accounting", "create_invoice")
            await books.release("accounting")
            await books.until_held("accounting")
        worker.kill()
    await books.control("/accounting/settings", module_on=True)
    await books.release("accounting")
    assert len(await list_invoices(books)) == INVOICES_AFTER[phase]
    assert await customer.read(outbox_id) == ("processing", 1, None)
    await require_one_invoice(customer, ctx, books, clock, outbox_id)


async def test_a_worker_that_is_killed_before_the_id_is_stored(
    customer: Customer,
    ctx: Context,
    books: RunningSandbox,
    rival: Rival,
    clock: FakeClock,
    killable: Killable,
) -> None:
    """The post was answered, and only the worker knew; the next search finds the draft."""
    outbox_id = await customer.draft(ctx)
    await books.hold("accounting", "create_invoice")
    async with killable.worker(**environ_of(books)) as worker:
        await books.until_held("accounting")
        async with worker.dying_while(rival, "SELECT 1 FROM accounting_outbox FOR UPDATE"):
            await books.release("accounting")
    assert await rival.rows("SELECT status, posted_invoice_id FROM accounting_outbox") == [("processing", None)]
    await require_one_invoice(customer, ctx, books, clock, outbox_id)


async def test_a_worker_that_is_killed_before_the_result_is_stored(
    customer: Customer,
    ctx: Context,
    books: RunningSandbox,
    rival: Rival,
    clock: FakeClock,
    killable: Killable,
) -> None:
    """It is killed in phase 4, and the id is stored: the next attempt does not depend on the search."""
    outbox_id = await customer.draft(ctx)
    await books.hold("accounting", "create_invoice")
    async with killable.worker(**environ_of(books)) as worker:
        await books.until_held("accounting")
        await books.hold("accounting", "find_invoices")
        await books.release("accounting")
        await books.until_held("accounting")
        worker.kill()
    assert await rival.rows("SELECT status, posted_invoice_id FROM accounting_outbox") == [("processing", 1)]
    await books.misbehave("accounting", "empty_list", operation="find_invoices")
    await require_one_invoice(customer, ctx, books, clock, outbox_id)


async def test_a_worker_that_is_killed_after_the_result_is_stored(
    customer: Customer,
    ctx: Context,
    books: RunningSandbox,
    rival: Rival,
    clock: FakeClock,
    killable: Killable,
) -> None:
    """The job is repeated, and finds nothing to do."""
    outbox_id = await customer.draft(ctx)
    async with killable.worker(**environ_of(books)) as worker:
        await rival.until_rows("SELECT status FROM accounting_outbox", ("completed",))
        worker.kill()
    assert await rival.rows("SELECT invoice_id FROM accounting_outbox") == [(1,)]
    await require_one_invoice(customer, ctx, books, clock, outbox_id)


async def require_one_invoice(
    customer: Customer, ctx: Context, books: RunningSandbox, clock: FakeClock, outbox_id: str
) -> None:
    """Repeat the job as the next worker does: while the lease runs it waits, and then there is one invoice."""
    if (await customer.read(outbox_id))[0] == "processing":
        assert await customer.work(ctx, outbox_id) is not None, "another worker may be at it"
    clock.advance(seconds=LEASE.total_seconds())
    assert await customer.work(ctx, outbox_id) is None
    status, _, invoice_id = await customer.read(outbox_id)
    assert (status, invoice_id, len(await list_invoices(books))) == ("completed", 1, 1)
