"""Processes that are killed in each phase of a reconciliation; the next delivery, or the worker, completes it.

A process is killed while it waits: for a lock of the test's own, or for the provider's stand-in.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from support.billing.card_purchase import PATH, CardPurchase, begin_purchase, sign, status_of
from support.billing.local_purchase import LocalPurchase, begin_local_purchase, notify_of, set_payment
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.command_server import ForkedCommand
from support.processes.killable import running_core, running_worker, until_alone
from support.tenancy.tenant import Tenant

from soundmark.core.features.billing.webhooks import card_reconciliation, local_reconciliation
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.secret import Secret

CHECKOUTS = "SELECT FROM checkouts FOR UPDATE"
REREADING = (
    "INSERT INTO procrastinate_jobs (queue_name, task_name, args)"
    " VALUES ('default', 'reread_payments', '{\"timestamp\": 0}')"
)
DUE_RECEIPT = (
    "INSERT INTO payment_receipts (provider, event_id, event_type, body_digest, organization_id, checkout_id, status,"
    " reread_at, received_at) VALUES ('local', %s, 'payment', '', %s, %s, 'pending', '2020-01-01', now())"
)


@pytest.fixture
async def purchase(tenant: Tenant, rival: Rival, card: RunningSandbox) -> CardPurchase:
    return await begin_purchase(tenant, rival, card)


@pytest.fixture
async def local_purchase(tenant: Tenant, rival: Rival, local: RunningSandbox) -> LocalPurchase:
    return await begin_local_purchase(tenant, rival, local)


@pytest.mark.parametrize(
    "module", [card_reconciliation, local_reconciliation], ids=lambda module: module.__name__[-20:]
)
def test_every_phase_has_a_case(module: Any) -> None:
    assert re.findall(r"^(\d)\. ", module.__doc__, re.MULTILINE) == ["1", "2", "3"]


@contextlib.asynccontextmanager
async def doomed(
    database_url: Secret, measuring_url: str, outside_urls: dict[str, str]
) -> AsyncIterator[tuple[httpx2.AsyncClient, ForkedCommand]]:
    """A Core that will be killed, whose answers must be lost."""
    with running_core(database_url, measuring_url, **outside_urls) as (url, process):
        async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
            yield client, process


async def lose(sending: Any) -> None:
    with pytest.raises(httpx2.HTTPError):
        await sending


def post_event(client: httpx2.AsyncClient, event: Any) -> Any:
    body = json.dumps(event).encode()
    headers = {"Content-Type": "application/json", "Stripe-Signature": sign(body, at_s=SystemClock().unix_s())}
    return lose(client.post(PATH, content=body, headers=headers))


async def require_whole(rival: Rival) -> None:
    """What was bought is there once, and nothing is pending."""
    assert await rival.rows("SELECT status FROM checkouts") == [("completed",)]
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]
    assert await rival.rows("SELECT 1 FROM payment_receipts WHERE status <> 'processed'") == []
    assert len(await rival.audited("billing.entitlement_changed")) == 1


async def until_completed(rival: Rival) -> None:
    async with asyncio.timeout(60):
        while not await rival.rows("SELECT 1 FROM checkouts WHERE status = 'completed'"):  # noqa: ASYNC110 - in PostgreSQL
            await asyncio.sleep(0.01)


async def test_a_core_that_dies_in_phase_1_of_an_event(
    purchase: CardPurchase,
    tenant: Tenant,
    rival: Rival,
    card: RunningSandbox,
    database_url: Secret,
    measuring_url: str,
    outside_urls: dict[str, str],
) -> None:
    event = purchase.event("invoice.paid")
    async with doomed(database_url, measuring_url, outside_urls) as (client, process), rival.holding(CHECKOUTS):
        delivering = await rival.while_waiting(post_event(client, event))
        process.kill()
        await delivering
    await until_alone(rival)
    assert (await card.calls("card"), await rival.rows("SELECT 1 FROM payment_receipts")) == ([], [])

    assert await status_of(tenant.api, event) == "processed"
    await require_whole(rival)


async def test_a_core_that_dies_in_phase_2_of_an_event(
    purchase: CardPurchase,
    tenant: Tenant,
    rival: Rival,
    card: RunningSandbox,
    database_url: Secret,
    measuring_url: str,
    outside_urls: dict[str, str],
) -> None:
    event = purchase.event("invoice.paid")
    async with doomed(database_url, measuring_url, outside_urls) as (client, process):
        await card.hold("card")
        delivering = asyncio.create_task(post_event(client, event))
        await card.until_held("card")
        process.kill()
        await delivering
    assert await rival.rows("SELECT status, checkout_id FROM payment_receipts") == [("pending", purchase.checkout_id)]

    assert await status_of(tenant.api, event) == "processed"
    await require_whole(rival)


async def test_a_core_that_dies_in_phase_3_of_an_event(
    purchase: CardPurchase,
    tenant: Tenant,
    rival: Rival,
    card: RunningSandbox,
    database_url: Secret,
    measuring_url: str,
    outside_urls: dict[str, str],
) -> None:
    event = purchase.event("invoice.paid")
    async with doomed(database_url, measuring_url, outside_urls) as (client, process):
        await card.hold("card")
        delivering = asyncio.create_task(post_event(client, event))
        await card.until_held("card")
        async with rival.holding(CHECKOUTS):
            await card.release("card")
            await rival.until_someone_waits()
            process.kill()
            await delivering
    await until_alone(rival)
    assert await rival.rows("SELECT status FROM payment_receipts") == [("pending",)]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []

    assert await status_of(tenant.api, event) == "processed"
    await require_whole(rival)


@pytest.mark.parametrize("phase", ["2", "3"])
async def test_a_core_that_dies_while_a_local_payment_is_verified(
    local_purchase: LocalPurchase,
    tenant: Tenant,
    rival: Rival,
    local: RunningSandbox,
    database_url: Secret,
    measuring_url: str,
    outside_urls: dict[str, str],
    phase: str,
) -> None:
    async with doomed(database_url, measuring_url, outside_urls) as (client, process):
        await local.hold("local")
        params = {"payment_id": local_purchase.payment_id}
        notifying = asyncio.create_task(lose(client.get(local_purchase.path, params=params)))
        await local.until_held("local")
        async with contextlib.AsyncExitStack() as held:
            if phase == "3":
                await held.enter_async_context(rival.holding(CHECKOUTS))
                await local.release("local")
                await rival.until_someone_waits()
            process.kill()
            await notifying
    await until_alone(rival)
    assert await rival.rows("SELECT status FROM payment_receipts") == [("pending",)]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []

    assert (await notify_of(tenant.api, local_purchase)).json == {"status": "processed"}
    await require_whole(rival)


@pytest.mark.parametrize("phase", ["1", "2", "3"])
async def test_a_worker_that_dies_while_it_asks_again(
    purchase: CardPurchase,
    rival: Rival,
    card: RunningSandbox,
    database_url: Secret,
    measuring_url: str,
    outside_urls: dict[str, str],
    phase: str,
) -> None:
    """The next worker asks when the checkout is due again; the first has put that off before it asked."""
    assert purchase.is_paid
    await rival.run("UPDATE checkouts SET reread_at = '2020-01-01'")
    with running_worker(database_url, measuring_url, **outside_urls) as worker:
        async with contextlib.AsyncExitStack() as held:
            if phase == "1":
                await held.enter_async_context(rival.holding(CHECKOUTS))
                await rival.run(REREADING)
                await rival.until_someone_waits()
            else:
                await card.hold("card")
                await rival.run(REREADING)
                await card.until_held("card")
                if phase == "3":
                    # The session was read; the subscription is next, then the lock.
                    await held.enter_async_context(rival.holding(CHECKOUTS))
                    await card.release("card")
                    await rival.until_someone_waits()
            worker.kill()
            worker.wait()
    await until_alone(rival)
    assert await rival.rows("SELECT status FROM checkouts") == [("pending",)]
    await rival.run("DELETE FROM procrastinate_jobs")
    await rival.run("UPDATE checkouts SET reread_at = '2020-01-01'")
    await card.control("/switches/reset")

    with running_worker(database_url, measuring_url, **outside_urls):
        await rival.run(REREADING)
        await until_completed(rival)

    await require_whole(rival)


@pytest.mark.parametrize("phase", ["1", "2", "3"])
async def test_a_worker_that_dies_while_it_asks_about_a_local_payment(
    local_purchase: LocalPurchase,
    rival: Rival,
    local: RunningSandbox,
    database_url: Secret,
    measuring_url: str,
    outside_urls: dict[str, str],
    phase: str,
) -> None:
    """It dies before the question, before the answer, and before what follows is stored. The next worker asks.

    The payment is due because its notification came within ten seconds of a question.
    """
    await rival.run(DUE_RECEIPT, local_purchase.payment_id, local_purchase.organization_id, local_purchase.checkout_id)
    async with contextlib.AsyncExitStack() as held:
        if phase == "1":
            await held.enter_async_context(rival.holding("SELECT FROM payment_receipts FOR UPDATE"))
        else:
            await local.hold("local")
        worker = held.enter_context(running_worker(database_url, measuring_url, **outside_urls))
        if phase == "1":
            await rival.until_someone_waits()
        else:
            await local.until_held("local")
        if phase == "3":
            await held.enter_async_context(rival.holding(CHECKOUTS))
            await local.release("local")
            await rival.until_someone_waits()
        worker.kill()
        worker.wait()
    await until_alone(rival)
    assert await rival.rows("SELECT status FROM checkouts") == [("pending",)]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []
    asked_before_count = 0 if phase == "1" else 1
    assert len(await local.calls("local")) == asked_before_count
    await rival.run("UPDATE payment_receipts SET reread_at = '2020-01-01'")
    await local.control("/switches/reset")

    with running_worker(database_url, measuring_url, **outside_urls):
        await until_completed(rival)

    await require_whole(rival)
    assert len(await local.calls("local")) == asked_before_count + 1


async def test_a_core_that_dies_before_it_stores_that_a_payment_is_unpaid(
    local_purchase: LocalPurchase,
    tenant: Tenant,
    rival: Rival,
    local: RunningSandbox,
    database_url: Secret,
    measuring_url: str,
    outside_urls: dict[str, str],
) -> None:
    """No ten seconds have begun: the next notification is asked about at once."""
    await set_payment(local, local_purchase.payment_id, status="PENDING")
    await local.hold("local")
    async with doomed(database_url, measuring_url, outside_urls) as (client, process):
        params = {"payment_id": local_purchase.payment_id}
        notifying = asyncio.create_task(lose(client.get(local_purchase.path, params=params)))
        await local.until_held("local")
        async with rival.holding(CHECKOUTS):
            await local.release("local")
            await rival.until_someone_waits()
            process.kill()
            await notifying
    await until_alone(rival)
    assert await rival.rows("SELECT status, unpaid_at FROM checkouts") == [("pending", None)]
    await set_payment(local, local_purchase.payment_id, status="SUCCESS")

    assert (await notify_of(tenant.api, local_purchase)).json == {"status": "processed"}
    await require_whole(rival)


async def test_the_worker_asks_about_a_notification_once_its_ten_seconds_are_over(
    local_purchase: LocalPurchase,
    tenant: Tenant,
    rival: Rival,
    local: RunningSandbox,
    database_url: Secret,
    measuring_url: str,
    outside_urls: dict[str, str],
) -> None:
    """Without a job that is queued. Core may be gone by then."""
    await set_payment(local, local_purchase.payment_id, status="PENDING")
    assert (await notify_of(tenant.api, local_purchase)).json == {"status": "pending"}
    await set_payment(local, local_purchase.payment_id, status="SUCCESS")
    assert (await notify_of(tenant.api, local_purchase)).json == {"status": "pending"}
    await rival.run("UPDATE checkouts SET unpaid_at = unpaid_at - interval '10 s'")

    with running_worker(database_url, measuring_url, **outside_urls):
        await until_completed(rival)

    await require_whole(rival)
    assert await rival.rows("SELECT share, verification_count FROM local_verifications ORDER BY share") == [
        ("jobs", 1),
        ("public", 1),
    ]
