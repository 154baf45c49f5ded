"""Which payments get a draft invoice: each once, and only those that the accounting system can hold."""

import asyncio
from typing import Any

import pytest
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker

from soundmark.core.context import Context
from soundmark.core.domain.billing.accounting import AccountingState
from soundmark.core.store.billing.outbox import find_newest_outbox
from soundmark.kit.crypto.secret import Secret

from .conftest import PAYMENT_KEY, SUBSCRIPTION_ID, Customer, RolledBack, environ_of

JOBS = "SELECT args ->> 'outbox_id' FROM procrastinate_jobs WHERE task_name = 'make_draft_invoice'"


async def test_a_payment_gets_one_row_and_one_job(customer: Customer, ctx: Context, rival: Rival) -> None:
    outbox_id = await customer.draft(ctx)
    assert await rival.rows(JOBS) == [(outbox_id,)]
    assert await rival.rows("SELECT description, amount_minor, currency, status FROM accounting_outbox") == [
        ("Codes Studio, 2026-11-20 to 2026-12-20", 10_555, "TND", "pending")
    ]


async def test_a_repeated_payment_has_its_draft_already(customer: Customer, ctx: Context, rival: Rival) -> None:
    """Each provider confirms a payment several times, and concurrently."""
    await asyncio.gather(*(customer.pay(ctx) for _ in range(5)))
    assert len(await rival.rows(JOBS)) == 1
    await customer.pay(ctx, key="another payment")
    assert len(await rival.rows(JOBS)) == 2


async def test_only_a_digest_of_the_reference_is_stored(customer: Customer, ctx: Context, rival: Rival) -> None:
    await customer.draft(ctx)
    rows = str(await rival.rows("SELECT * FROM accounting_outbox"))
    assert PAYMENT_KEY not in rows
    assert PAYMENT_KEY not in repr(customer.subscription)


@pytest.mark.parametrize("changes", [{"currency": "EUR"}, {"currency": "tnd"}, {"amount_minor": 0}])
async def test_what_the_accounting_system_cannot_hold_is_not_scheduled(
    customer: Customer, ctx: Context, changes: dict[str, Any]
) -> None:
    assert await customer.pay(ctx, **changes) is None


async def test_without_a_third_party_nothing_is_scheduled(customer: Customer, ctx: Context, rival: Rival) -> None:
    await rival.run("DELETE FROM accounting_customers")
    assert await customer.pay(ctx) is None


async def test_while_drafts_are_switched_off_nothing_is_scheduled(
    customer: Customer, books: RunningSandbox, database_url: Secret, clock: FakeClock, rival: Rival
) -> None:
    """The database has the last word."""
    environ = environ_of(books)
    async with make_worker(database_url, clock, **environ | {"ACCOUNTING_ENABLE_INVOICE_SYNC": "false"}) as ctx:
        assert await customer.pay(ctx) is None
        await rival.run(
            "INSERT INTO platform_configuration (name, value, updated_at)"
            " VALUES ('accounting_enable_invoice_sync', 'true', now())"
        )
        assert await customer.pay(ctx) is not None


async def test_a_transaction_that_rolls_back_leaves_neither_row_nor_job(
    customer: Customer, ctx: Context, rival: Rival
) -> None:
    with pytest.raises(RolledBack):
        await customer.pay(ctx, is_rolled_back=True)
    assert await rival.rows(JOBS) == await rival.rows("SELECT id FROM accounting_outbox") == []


async def test_the_newest_draft_of_a_subscription_counts(customer: Customer, ctx: Context, rival: Rival) -> None:
    first = await customer.draft(ctx, key="first")
    await rival.run("UPDATE accounting_outbox SET status = 'completed', due_at = NULL, invoice_id = 41")
    tenant = customer.tenant.organization_id

    async def find() -> dict[str, AccountingState]:
        async with ctx.db.transaction(tenant=tenant) as tx:
            return await find_newest_outbox(tx, tenant, [SUBSCRIPTION_ID, "bsu_unknown"])

    assert await find() == {SUBSCRIPTION_ID: AccountingState("completed", 41)}
    customer.tenant.api.clock.advance(days=31)
    assert await customer.draft(ctx, key="second") != first
    assert await find() == {SUBSCRIPTION_ID: AccountingState("pending", None)}
