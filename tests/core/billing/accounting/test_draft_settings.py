"""A draft invoice waits for the settings of the accounting system and takes the rate of tax from them."""

import pytest
from structlog.testing import capture_logs
from support.database.rival import Rival
from support.outside.accounting import list_invoices, list_operations
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker

from soundmark.core.context import Context
from soundmark.kit.crypto.secret import Secret

from .conftest import Customer, environ_of


async def test_a_wrong_key_is_tried_again_and_not_logged(
    customer: Customer, books: RunningSandbox, database_url: Secret, clock: FakeClock
) -> None:
    environ = environ_of(books) | {"ACCOUNTING_API_KEY": "a-wrong-key-Ü"}
    async with make_worker(database_url, clock, **environ) as ctx:
        outbox_id = await customer.draft(ctx)
        with capture_logs() as logs:
            assert await customer.work(ctx, outbox_id) is not None
    assert logs[-1]["reason"] == "unusable_key"
    assert "a-wrong-key" not in str(logs)
    async with make_worker(database_url, clock, **environ | {"ACCOUNTING_API_KEY": "a-wrong-key"}) as ctx:
        clock.advance(seconds=30)
        with capture_logs() as logs:
            assert await customer.work(ctx, outbox_id) is not None
    assert logs[-1]["reason"] == "status_401"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ACCOUNTING_BASE_URL": ""}, "not_configured"),
        ({"ACCOUNTING_API_KEY": ""}, "not_configured"),
        ({"ACCOUNTING_TVA_RATE": ""}, "not_configured"),
        ({"ACCOUNTING_ENABLE_INVOICE_SYNC": "false"}, "switched_off"),
        ({"ACCOUNTING_CURRENCY": "EUR"}, "another_currency"),
    ],
)
async def test_a_draft_waits_for_its_settings(
    customer: Customer,
    ctx: Context,
    books: RunningSandbox,
    database_url: Secret,
    clock: FakeClock,
    changes: dict[str, str],
    reason: str,
) -> None:
    outbox_id = await customer.draft(ctx)
    async with make_worker(database_url, clock, **environ_of(books) | changes) as lacking:
        with capture_logs() as logs:
            assert await customer.work(lacking, outbox_id) is not None
    assert (await customer.read(outbox_id))[0] == "pending"
    assert (logs[-1]["reason"], await list_operations(books)) == (reason, [])
    clock.advance(seconds=30)
    assert await customer.work(ctx, outbox_id) is None
    assert (await customer.read(outbox_id))[0] == "completed"


async def test_a_draft_without_a_third_party_waits(
    customer: Customer, ctx: Context, books: RunningSandbox, rival: Rival
) -> None:
    outbox_id = await customer.draft(ctx)
    await rival.run("DELETE FROM accounting_customers")
    assert await customer.work(ctx, outbox_id) is not None
    assert await list_operations(books) == []


async def test_the_rate_of_tax_is_exact(
    customer: Customer, books: RunningSandbox, database_url: Secret, clock: FakeClock
) -> None:
    """7.1 is no binary fraction; a longer one would be a complaint."""
    async with make_worker(database_url, clock, **environ_of(books) | {"ACCOUNTING_TVA_RATE": "7.1"}) as ctx:
        outbox_id = await customer.draft(ctx)
        assert await customer.work(ctx, outbox_id) is None
    (draft,) = await list_invoices(books)
    assert draft["lines"][0]["tva_tx"] == "7.1000"
    assert (await customer.read(outbox_id))[0] == "completed"
