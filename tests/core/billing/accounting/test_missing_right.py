"""A user of the accounting system who may not read all third parties: its drafts are made, and it cannot see them."""

from typing import Any

import pytest
from structlog.testing import capture_logs
from support.database.rival import Rival
from support.outside.accounting import list_invoices
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock

from soundmark.core.context import Context
from soundmark.core.domain.billing.accounting import LEASE
from soundmark.core.features.billing.accounting.service import retry_draft

from .conftest import Customer

MISSING_RIGHT = "missing_right_read_all_third_parties"


@pytest.fixture
async def books(books: RunningSandbox) -> RunningSandbox:
    """The accounting system, with our restricted user."""
    await books.control("/accounting/settings", restricted_user=True)
    return books


async def list_ids(books: RunningSandbox) -> list[int]:
    """Return the ids of all invoices there are, the oldest first."""
    return [int(invoice["id"]) for invoice in await list_invoices(books)]


async def work(customer: Customer, ctx: Context, outbox_id: str) -> Any:
    """Run the job once; return the reason that it logged."""
    with capture_logs() as logs:
        await customer.work(ctx, outbox_id)
    (logged,) = [line for line in logs if line["event"].startswith("draft_invoice_")]
    return logged["reason"]


async def test_the_draft_fails_with_the_missing_right_and_a_retry_makes_no_second_one(
    customer: Customer, ctx: Context, books: RunningSandbox
) -> None:
    """The answer to the post named the draft, so its id is read; once the right is given, the draft is adopted."""
    outbox_id = await customer.draft(ctx)
    assert await work(customer, ctx, outbox_id) == MISSING_RIGHT
    assert await customer.read(outbox_id) == ("failed", 1, None)
    await retry_draft(ctx, outbox_id)
    assert await work(customer, ctx, outbox_id) == MISSING_RIGHT
    assert await list_ids(books) == [1]
    await books.control("/accounting/settings", restricted_user=False)
    await retry_draft(ctx, outbox_id)
    assert await work(customer, ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("completed", 1, 1)
    assert await list_ids(books) == [1]


async def test_a_worker_that_died_after_it_stored_the_id_leads_to_no_second_draft(
    customer: Customer, ctx: Context, books: RunningSandbox, rival: Rival, clock: FakeClock
) -> None:
    outbox_id = await customer.draft(ctx)
    await work(customer, ctx, outbox_id)
    # What the row is when the worker is killed between storing the id and storing the result.
    await rival.run("UPDATE accounting_outbox SET status = 'processing', due_at = %s", clock.now() + LEASE)
    clock.advance(seconds=LEASE.total_seconds())
    assert await work(customer, ctx, outbox_id) == MISSING_RIGHT
    assert await list_ids(books) == [1]


async def test_after_a_lost_answer_the_draft_fails_at_once(
    customer: Customer, ctx: Context, books: RunningSandbox
) -> None:
    """No id is known, and the search is blind: each further attempt might make another draft."""
    await books.misbehave("accounting", "lost_answer", operation="create_invoice")
    outbox_id = await customer.draft(ctx)
    assert await work(customer, ctx, outbox_id) == MISSING_RIGHT
    assert (await customer.read(outbox_id))[0] == "failed"


@pytest.mark.usefixtures("configured")
async def test_setting_a_third_party_says_that_a_right_is_missing(customer: Customer) -> None:
    """The accounting system is not unavailable; it refuses this user."""
    api = customer.tenant.api
    path = f"/v1/billing/admin/dolibarr/customers/{customer.tenant.organization_id}"
    with capture_logs() as logs:
        answer = await api.call("PUT", path, json={"thirdparty_id": 1})
    assert (answer.status, answer.code) == (503, "accounting_unavailable")
    assert answer.json["detail"] == (
        "The accounting system refuses the user of accounting_api_key (403), which lacks a right:"
        ' "Read third parties" or "Read all third parties (and their objects) by internal users".'
    )
    (logged,) = [line for line in logs if line["event"] == "accounting_call_failed"]
    assert logged["reason"] == "status_403"
