"""Processes that are killed in each phase of a reconciliation; the next delivery, or the worker, completes it.

A process is killed while it waits: for a lock of the test's own, or for the provider's stand-in.
"""

import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.billing.card_purchase import PATH, CardPurchase, sign, status_of
from support.billing.local_purchase import LocalPurchase, notify_of, set_payment
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.killable import Doomed, Killable, until_alone
from support.tenancy.tenant import Tenant

from soundmark.core.steps import card_reconciliation, local_reconciliation
from soundmark.kit.clock import SystemClock

CHECKOUTS = "SELECT FROM checkouts FOR UPDATE"
REREADING = (
    "INSERT INTO procrastinate_jobs (queue_name, task_name, args)"
    " VALUES ('default', 'reread_payments', '{\"timestamp\": 0}')"
)
DUE_RECEIPT = (
    "INSERT INTO payment_receipts (provider, event_id, event_type, body_digest, organization_id, checkout_id, status,"
    " reread_at, received_at) VALUES ('local', %s, 'payment', '', %s, %s, 'pending', '2020-01-01', now())"
)


@pytest.mark.parametrize(
    "module", [card_reconciliation, local_reconciliation], ids=lambda module: module.__name__[-20:]
)
def test_every_phase_has_a_case(module: Any) -> None:
    assert re.findall(r"^(\d)\. ", module.__doc__, re.MULTILINE) == ["1", "2", "3"]


def post_event(core: Doomed, event: Any) -> None:
    body = json.dumps(event).encode()
    headers = {"Content-Type": "application/json", "Stripe-Signature": sign(body, at_s=SystemClock().unix_s())}
    core.lose("POST", PATH, content=body, headers=headers)


@contextlib.asynccontextmanager
async def killed_in(
    phase: str, process: Doomed, rival: Rival, provider: RunningSandbox, system: str
) -> AsyncIterator[None]:
    """Kill the process in a phase of what the block begins: behind the checkout, before an answer, or after it."""
    if phase == "1":
        async with process.dying_while(rival, CHECKOUTS):
            yield
        return
    await provider.hold(system)
    yield
    await provider.until_held(system)
    if phase == "3":
        async with process.dying_while(rival, CHECKOUTS):
            await provider.release(system)
    process.kill()
    await until_alone(rival)


async def require_whole(rival: Rival) -> None:
    """What was bought is there once, and nothing is pending."""
    assert await rival.rows("SELECT status FROM checkouts") == [("completed",)]
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]
    assert await rival.rows("SELECT 1 FROM payment_receipts WHERE status <> 'processed'") == []
    assert len(await rival.audited("billing.entitlement_changed")) == 1


async def until_completed(rival: Rival) -> None:
    await rival.until_found("SELECT 1 FROM checkouts WHERE status = 'completed'")


@pytest.mark.parametrize("phase", ["1", "2", "3"])
async def test_a_core_that_dies_in_a_phase_of_an_event(
    purchase: CardPurchase, tenant: Tenant, rival: Rival, card: RunningSandbox, killable: Killable, phase: str
) -> None:
    event = purchase.event("invoice.paid")
    async with killable.core() as core, killed_in(phase, core, rival, card, "card"):
        post_event(core, event)
    receipts = await rival.rows("SELECT status, checkout_id FROM payment_receipts")
    assert receipts == ([] if phase == "1" else [("pending", purchase.checkout_id)])
    assert phase != "1" or await card.calls("card") == []
    assert await rival.rows("SELECT 1 FROM subscriptions") == []

    assert await status_of(tenant.api, event) == "processed"
    await require_whole(rival)


@pytest.mark.parametrize("phase", ["2", "3"])
async def test_a_core_that_dies_while_a_local_payment_is_verified(
    local_purchase: LocalPurchase, tenant: Tenant, rival: Rival, local: RunningSandbox, killable: Killable, phase: str
) -> None:
    async with killable.core() as core, killed_in(phase, core, rival, local, "local"):
        core.lose("GET", local_purchase.path, params={"payment_id": local_purchase.payment_id}, headers={})
    assert await rival.rows("SELECT status FROM payment_receipts") == [("pending",)]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []

    assert (await notify_of(tenant.api, local_purchase)).json == {"status": "processed"}
    await require_whole(rival)


@pytest.mark.parametrize("phase", ["1", "2", "3"])
async def test_a_worker_that_dies_while_it_asks_again(
    purchase: CardPurchase, rival: Rival, card: RunningSandbox, killable: Killable, phase: str
) -> None:
    """The next worker asks when the checkout is due again; the first has put that off before it asked.

    In phase 3 the session was read; the subscription is next, then the lock.
    """
    assert purchase.is_paid
    await rival.run("UPDATE checkouts SET reread_at = '2020-01-01'")
    async with killable.worker() as worker, killed_in(phase, worker, rival, card, "card"):
        await rival.run(REREADING)
    assert await rival.rows("SELECT status FROM checkouts") == [("pending",)]
    await rival.run("DELETE FROM procrastinate_jobs")
    await rival.run("UPDATE checkouts SET reread_at = '2020-01-01'")
    await card.control("/switches/reset")

    async with killable.worker():
        await rival.run(REREADING)
        await until_completed(rival)

    await require_whole(rival)


@pytest.mark.parametrize("phase", ["1", "2", "3"])
async def test_a_worker_that_dies_while_it_asks_about_a_local_payment(
    local_purchase: LocalPurchase, rival: Rival, local: RunningSandbox, killable: Killable, phase: str
) -> None:
    """It dies before the question, before the answer, and before what follows is stored. The next worker asks.

    The payment becomes due because its notification came within ten seconds of a question.
    """
    due = (local_purchase.payment_id, local_purchase.organization_id, local_purchase.checkout_id)
    if phase == "1":
        await rival.run(DUE_RECEIPT, *due)
        async with rival.holding("SELECT FROM payment_receipts FOR UPDATE"), killable.worker() as worker:
            await rival.until_someone_waits()
            worker.kill()
        await until_alone(rival)
    else:
        async with killable.worker() as worker, killed_in(phase, worker, rival, local, "local"):
            await rival.run(DUE_RECEIPT, *due)
    assert await rival.rows("SELECT status FROM checkouts") == [("pending",)]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []
    asked_before_count = 0 if phase == "1" else 1
    assert len(await local.calls("local")) == asked_before_count
    await rival.run("UPDATE payment_receipts SET reread_at = '2020-01-01'")
    await local.control("/switches/reset")

    async with killable.worker():
        await until_completed(rival)

    await require_whole(rival)
    assert len(await local.calls("local")) == asked_before_count + 1


async def test_a_core_that_dies_before_it_stores_that_a_payment_is_unpaid(
    local_purchase: LocalPurchase, tenant: Tenant, rival: Rival, local: RunningSandbox, killable: Killable
) -> None:
    """No ten seconds have begun: the next notification is asked about immediately."""
    await set_payment(local, local_purchase.payment_id, status="PENDING")
    async with killable.core() as core, killed_in("3", core, rival, local, "local"):
        core.lose("GET", local_purchase.path, params={"payment_id": local_purchase.payment_id}, headers={})
    assert await rival.rows("SELECT status, unpaid_at FROM checkouts") == [("pending", None)]
    await set_payment(local, local_purchase.payment_id, status="SUCCESS")

    assert (await notify_of(tenant.api, local_purchase)).json == {"status": "processed"}
    await require_whole(rival)


async def test_the_worker_asks_about_a_notification_once_its_ten_seconds_are_over(
    local_purchase: LocalPurchase, tenant: Tenant, rival: Rival, local: RunningSandbox, killable: Killable
) -> None:
    """Without a job that is queued. Core may be gone by then."""
    await set_payment(local, local_purchase.payment_id, status="PENDING")
    assert (await notify_of(tenant.api, local_purchase)).json == {"status": "pending"}
    await set_payment(local, local_purchase.payment_id, status="SUCCESS")
    assert (await notify_of(tenant.api, local_purchase)).json == {"status": "pending"}
    await rival.run("UPDATE checkouts SET unpaid_at = unpaid_at - interval '10 s'")

    async with killable.worker():
        await until_completed(rival)

    await require_whole(rival)
    assert await rival.rows("SELECT share, verification_count FROM local_verifications ORDER BY share") == [
        ("jobs", 1),
        ("public", 1),
    ]
