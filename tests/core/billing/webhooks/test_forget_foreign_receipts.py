"""The job that deletes the receipts of card events that are not ours, a month after they arrived."""

import contextlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
from support.billing.card_purchase import CardPurchase, deliver, status_of
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.billing.payment_receipt import FOREIGN_KEPT
from soundmark.core.features.billing.webhooks import jobs
from soundmark.core.features.billing.webhooks.jobs import forget_foreign_receipts
from soundmark.core.features.billing.webhooks.missed_events import LOOK_BACK_MAX, OVERLAP
from soundmark.core.features.billing.webhooks.rereads import reread_card

RECEIPTS = "SELECT event_id FROM payment_receipts ORDER BY event_id"


async def insert_receipt(
    rival: Rival, event_id: str, status: str, at: datetime, *, organization_id: str | None = None
) -> None:
    await rival.run(
        "INSERT INTO payment_receipts (provider, event_id, event_type, body_digest, organization_id, status, reread_at,"
        " received_at, processed_at) VALUES ('card', %s, 'invoice.paid', '\\x01', %s, %s, %s, %s, %s)",
        event_id,
        organization_id,
        status,
        at if status == "pending" else None,
        at,
        None if status == "pending" else at,
    )


def test_a_receipt_is_kept_for_longer_than_anybody_lists_its_event() -> None:
    assert FOREIGN_KEPT > LOOK_BACK_MAX + OVERLAP


async def test_only_what_is_not_ours_and_a_month_old_is_forgotten(tenant: Tenant, rival: Rival, work: Context) -> None:
    now = tenant.api.clock.freeze()
    old, ours = now - FOREIGN_KEPT - timedelta(seconds=1), tenant.organization_id
    await insert_receipt(rival, "evt_1_ignored", "ignored", old)
    await insert_receipt(rival, "evt_2_disagreed", "ignored", old, organization_id=ours)
    await insert_receipt(rival, "evt_3_never_judged", "pending", old)
    await insert_receipt(rival, "evt_4_granted", "processed", old, organization_id=ours)
    await insert_receipt(rival, "evt_5_waits", "pending", old, organization_id=ours)
    await insert_receipt(rival, "evt_6_young", "ignored", now - FOREIGN_KEPT)

    assert await forget_foreign_receipts(work) == 3

    assert await rival.rows(RECEIPTS) == [("evt_4_granted",), ("evt_5_waits",), ("evt_6_young",)]
    assert await forget_foreign_receipts(work) == 0


async def test_an_event_that_granted_something_is_never_counted_again(
    purchase: CardPurchase, tenant: Tenant, rival: Rival, work: Context, card: RunningSandbox
) -> None:
    event = purchase.event("invoice.paid")
    await status_of(tenant.api, event)
    tenant.api.clock.advance(days=400)
    await card.control("/calls/clear")

    assert await forget_foreign_receipts(work) == 0

    assert await status_of(tenant.api, event) == "processed"
    assert await card.calls("card") == []
    assert await rival.rows("SELECT count(*) FROM subscriptions") == [(1,)]


async def test_many_are_forgotten_in_bounded_steps(
    tenant: Tenant, rival: Rival, work: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_AT_ONCE", 2)
    old = tenant.api.clock.now() - FOREIGN_KEPT - timedelta(days=1)
    for number in range(5):
        await insert_receipt(rival, f"evt_{number}", "ignored", old)

    assert await forget_foreign_receipts(work) == 5


async def test_a_receipt_that_is_being_judged_again_is_left_alone(tenant: Tenant, rival: Rival, work: Context) -> None:
    old = tenant.api.clock.now() - FOREIGN_KEPT - timedelta(days=1)
    await insert_receipt(rival, "evt_again", "ignored", old)

    async with rival.holding("SELECT FROM payment_receipts FOR UPDATE"):
        assert await forget_foreign_receipts(work) == 0
    assert await forget_foreign_receipts(work) == 1


@contextlib.asynccontextmanager
async def forgetting_after(rival: Rival, statement: str) -> AsyncIterator[None]:
    """Delete ignored receipts right after each `statement`, as the job may, until the block ends."""
    await rival.run(
        "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$ BEGIN DELETE FROM public.payment_receipts WHERE status = 'ignored'; RETURN NULL; END $$"
    )
    try:
        await rival.run(
            f"CREATE TRIGGER forgetting AFTER {statement} FOR EACH STATEMENT EXECUTE FUNCTION public.forget()"
        )
        yield
    finally:
        await rival.run("DROP FUNCTION forget CASCADE")


@pytest.mark.parametrize("statement", ["INSERT ON payment_receipts", "UPDATE ON checkouts"])
async def test_an_ignored_event_that_comes_again_while_it_is_forgotten_counts(
    purchase: CardPurchase, tenant: Tenant, rival: Rival, statement: str
) -> None:
    """It finds its old receipt there, and a moment later gone."""
    event = purchase.event("invoice.paid")
    await insert_receipt(rival, event["id"], "ignored", tenant.api.clock.now() - FOREIGN_KEPT - timedelta(days=1))

    async with forgetting_after(rival, statement):
        assert await status_of(tenant.api, event) == "processed"

    receipts = await rival.rows("SELECT event_id, status, checkout_id FROM payment_receipts")
    assert receipts == [(event["id"], "processed", purchase.checkout_id)]


async def test_events_that_name_no_checkout_keep_nobody_waiting(
    purchase: CardPurchase, tenant: Tenant, rival: Rival, work: Context, card: RunningSandbox
) -> None:
    """Processes that died left them pending. Nobody can ask about them, and they are the longest due."""
    for number in range(60):
        await insert_receipt(rival, f"evt_of_nobody{number}", "pending", purchase.began_at)
    await card.misbehave("card", "rate_limited")
    assert (await deliver(tenant.api, purchase.event("invoice.paid"))).status == 503
    await rival.run("UPDATE checkouts SET reread_at = NULL")  # Only the receipt asks.
    tenant.api.clock.advance(minutes=3)

    assert await reread_card(work) == 1
