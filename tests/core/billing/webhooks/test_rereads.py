"""The job that asks the providers about what stays pending: a lost notification heals by itself."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from structlog.testing import capture_logs
from support.billing.card_purchase import (
    CardPurchase,
    begin_purchase,
    deliver,
    insert_checkout,
    list_paths,
    make_purchase,
    status_of,
)
from support.billing.local_purchase import begin_local_purchase, notify_of, set_payment
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.billing.payment_receipt import next_reread_at
from soundmark.core.features.billing.webhooks.rereads import forget_counts, reread_card, reread_local
from soundmark.core.problems import PaymentProviderUnavailable

NOW = datetime(2026, 11, 23, tzinfo=UTC)
CHECKOUTS = "SELECT status, rereads FROM checkouts"


def test_the_pauses_double_from_two_minutes_to_an_hour_until_a_day_and_an_hour_have_passed() -> None:
    now, rereads, minutes = NOW + timedelta(minutes=2), 1, [2]
    while (following := next_reread_at(since=NOW, rereads=rereads, now=now)) is not None:
        now, rereads = following, rereads + 1
        minutes.append(int((now - NOW).total_seconds()) // 60)
    assert minutes[:6] == [2, 6, 14, 30, 62, 122]
    assert {later - earlier for earlier, later in pairwise(minutes[5:])} == {60}
    assert timedelta(hours=24) < now - NOW <= timedelta(hours=25)


def test_the_last_time_is_25_hours_after_the_first() -> None:
    end = NOW + timedelta(hours=25)
    assert next_reread_at(since=NOW, rereads=30, now=end - timedelta(hours=1)) == end
    assert next_reread_at(since=NOW, rereads=30, now=end - timedelta(minutes=59)) is None


def test_the_number_of_rereads_does_not_overflow() -> None:
    assert next_reread_at(since=NOW, rereads=10**6, now=NOW) == NOW + timedelta(hours=1)


async def test_a_card_purchase_whose_events_were_lost_heals_when_it_is_due(
    purchase: CardPurchase, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    assert (await reread_card(work), await card.calls("card")) == (0, [])
    clock.advance(minutes=2)

    assert await reread_card(work) == 1

    assert await list_paths(card) == [
        f"/v1/checkout/sessions/{purchase.session_id}",
        f"/v1/subscriptions/{purchase.subscription_id}",
    ]
    assert await rival.rows("SELECT status, reread_at FROM checkouts") == [("completed", None)]
    assert await rival.rows("SELECT status, last_event_at FROM subscriptions") == [("active", None)]
    assert await reread_card(work) == 0


async def test_an_event_that_arrives_after_all_changes_nothing(
    purchase: CardPurchase, work: Context, tenant: Tenant, rival: Rival, clock: FakeClock
) -> None:
    clock.advance(minutes=2)
    await reread_card(work)

    assert await status_of(tenant.api, purchase.event("checkout.session.completed")) == "processed"
    assert await rival.rows("SELECT count(*) FROM subscriptions") == [(1,)]
    assert len(await rival.audited("billing.entitlement_changed")) == 1


async def test_an_event_that_was_ignored_and_comes_again_is_asked_about(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    """Its checkout is there now, and the provider is not."""
    now = clock.freeze()
    purchase = make_purchase(tenant)
    event = purchase.event("invoice.paid")
    assert await status_of(tenant.api, event) == "ignored"
    await insert_checkout(rival, purchase)

    assert (await deliver(tenant.api, event)).code == "payment_provider_unavailable"

    assert await list_paths(card) == [f"/v1/subscriptions/{purchase.subscription_id}"]
    due = await rival.rows("SELECT status, reread_at FROM payment_receipts")
    assert due == [("pending", now + timedelta(minutes=2))]


async def test_an_unpaid_session_is_asked_about_at_growing_intervals(
    tenant: Tenant, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    await begin_purchase(tenant, rival, card, is_paid=False, status="incomplete")
    clock.freeze()
    await rival.run("UPDATE checkouts SET reread_at = %s, created_at = %s", clock.now(), clock.now())
    asked = []
    for minute in range(130):
        await reread_card(work)
        if await card.calls("card"):
            asked.append(minute)
            await card.control("/calls/clear")
        clock.advance(minutes=1)
    assert asked == [0, 4, 12, 28, 60, 120]
    assert await rival.rows(CHECKOUTS) == [("pending", 6)]


async def test_a_checkout_is_asked_about_after_it_has_expired_and_then_no_more(
    purchase: CardPurchase, work: Context, rival: Rival, clock: FakeClock
) -> None:
    """A payment may be under way at the end of its life."""
    clock.advance(hours=24, minutes=30)
    await rival.run("UPDATE checkouts SET status = 'expired'")

    assert await reread_card(work) == 1
    assert await rival.rows("SELECT status FROM checkouts") == [("completed",)]

    await rival.run("UPDATE checkouts SET status = 'expired', completed_at = NULL, reread_at = %s", purchase.began_at)
    await rival.run("UPDATE checkouts SET provider_reference = NULL, subscription_reference = NULL")
    clock.advance(hours=1)
    assert await reread_card(work) == 0
    assert await rival.rows("SELECT reread_at FROM checkouts") == [(None,)]


async def test_a_provider_that_fails_is_not_asked_about_everything(
    tenant: Tenant, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    for _ in range(5):
        await begin_purchase(tenant, rival, card)
    await card.misbehave("card", "refused", times=5)
    clock.advance(minutes=2)

    assert (await reread_card(work), len(await card.calls("card"))) == (0, 3)

    await card.control("/switches/reset")
    clock.advance(minutes=4)
    assert await reread_card(work) == 5


async def test_of_two_workers_one_asks(
    purchase: CardPurchase, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    clock.advance(minutes=2)
    async with rival.holding("SELECT FROM checkouts FOR UPDATE"):
        both = [asyncio.create_task(reread_card(work)) for _ in range(2)]
        await rival.until_someone_waits(2)

    assert sorted(await asyncio.gather(*both)) == [0, 1]
    assert len(await card.calls("card")) == 2, purchase


async def test_without_credentials_nothing_is_asked_and_nothing_is_logged(
    purchase: CardPurchase, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    await rival.run("DELETE FROM platform_secrets")
    clock.advance(minutes=2)
    with capture_logs() as logs:
        assert (await reread_card(work), await reread_local(work)) == (0, 0)
    assert (await card.calls("card"), logs) == ([], []), purchase


async def test_a_local_payment_whose_notification_was_lost_heals(
    tenant: Tenant, work: Context, rival: Rival, local: RunningSandbox, clock: FakeClock
) -> None:
    await begin_local_purchase(tenant, rival, local)
    assert (await reread_local(work), await local.calls("local")) == (0, [])
    clock.advance(minutes=2)

    assert await reread_local(work) == 1

    assert len(await local.calls("local")) == 1
    assert await rival.rows("SELECT status, reread_at FROM checkouts") == [("completed", None)]
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]
    assert await rival.rows("SELECT 1 FROM payment_receipts") == []


async def test_a_payment_is_asked_about_once_even_if_its_notification_is_due_too(
    tenant: Tenant, work: Context, rival: Rival, local: RunningSandbox, clock: FakeClock
) -> None:
    """Never a loop against the local provider."""
    purchase = await begin_local_purchase(tenant, rival, local, status="PENDING")
    assert (await notify_of(tenant.api, purchase)).json == {"status": "pending"}
    clock.advance(minutes=3)

    await reread_local(work)
    await reread_local(work)

    assert len(await local.calls("local")) == 2
    await set_payment(local, purchase.payment_id, status="SUCCESS")
    clock.advance(minutes=5)
    assert await reread_local(work) == 1
    assert await rival.rows("SELECT status FROM payment_receipts") == [("processed",)]


async def test_a_payment_that_disagrees_does_not_keep_the_others_waiting(
    tenant: Tenant, work: Context, rival: Rival, local: RunningSandbox, clock: FakeClock
) -> None:
    await begin_local_purchase(tenant, rival, local, amount=1)
    await begin_local_purchase(tenant, rival, local)
    clock.advance(minutes=2)

    assert (await reread_local(work), len(await local.calls("local"))) == (1, 2)
    assert await rival.rows(CHECKOUTS + " ORDER BY id") == [("pending", 1), ("completed", 1)]


async def test_a_local_provider_that_fails_is_left_alone_until_the_next_time(
    tenant: Tenant, work: Context, rival: Rival, local: RunningSandbox, clock: FakeClock
) -> None:
    for _ in range(3):
        await begin_local_purchase(tenant, rival, local)
    await local.misbehave("local", "rate_limited")
    clock.advance(minutes=2)

    with pytest.raises(PaymentProviderUnavailable):
        await reread_local(work)
    assert len(await local.calls("local")) == 1


async def test_counts_of_past_minutes_are_deleted(work: Context, rival: Rival, clock: FakeClock) -> None:
    now = clock.freeze()
    for age in (0, 59, 61, 60 * 24):
        await rival.run("INSERT INTO local_verifications VALUES (%s, 1, 'jobs')", now - timedelta(minutes=age))

    assert await forget_counts(work) == 2

    assert await rival.rows("SELECT count(*) FROM local_verifications") == [(2,)]
