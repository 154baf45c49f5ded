"""A card provider that is slow, down or confused: the answer is 503, the receipt stays pending, nothing is lost."""

from typing import Any

import pytest
from support.billing.card_purchase import FINAL, CardPurchase, deliver, status_of
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.billing.webhooks.rereads import reread_card

RECEIPTS = "SELECT status, processed_at, checkout_id, organization_id, reread_at IS NOT NULL FROM payment_receipts"


async def require_pending_then_healed(
    tenant: Tenant, rival: Rival, card: RunningSandbox, purchase: CardPurchase, event: dict[str, Any]
) -> None:
    answer = await deliver(tenant.api, event)
    assert (answer.status, answer.code) == (503, "payment_provider_unavailable")
    assert await rival.rows(RECEIPTS) == [("pending", None, purchase.checkout_id, tenant.organization_id, True)]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []

    await card.control("/switches/reset")
    assert await status_of(tenant.api, event) == "processed"
    assert await rival.rows("SELECT status FROM payment_receipts") == [("processed",)]
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]


FAULTS = ["refused", "rate_limited", "html", "list", "lost_answer"]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_provider_that_does_not_answer_as_documented(
    tenant: Tenant, rival: Rival, card: RunningSandbox, purchase: CardPurchase, fault: str
) -> None:
    headers = FINAL if fault == "conflict" else {}
    await card.misbehave("card", fault, times=4, headers=headers)  # More often than the client tries.
    await require_pending_then_healed(tenant, rival, card, purchase, purchase.event("invoice.paid"))


OTHER_OBJECTS: list[dict[str, Any]] = [{"id": "sub_MARKanother"}, {"items": None}]


@pytest.mark.parametrize("changes", OTHER_OBJECTS, ids=str)
async def test_a_provider_that_answers_with_another_object(
    tenant: Tenant, card: RunningSandbox, purchase: CardPurchase, changes: dict[str, Any]
) -> None:
    event = purchase.event("invoice.paid")
    await purchase.publish(card, **changes)
    answer = await deliver(tenant.api, event)
    assert (answer.status, answer.code) == (503, "payment_provider_unavailable")
    assert "MARK" not in answer.body.decode()
    await purchase.publish(card)
    assert await status_of(tenant.api, event) == "processed"


async def test_an_object_that_the_provider_does_not_have(
    tenant: Tenant, card: RunningSandbox, purchase: CardPurchase
) -> None:
    """The event is signed, so the secret key is that of another account. Once it is corrected, the event counts."""
    event = purchase.event("invoice.paid")
    await purchase.withdraw(card)
    answer = await deliver(tenant.api, event)
    assert (answer.status, answer.code) == (503, "payment_provider_unavailable")
    await purchase.publish(card)
    assert await status_of(tenant.api, event) == "processed"


async def test_without_a_secret_key_events_wait(
    tenant: Tenant, rival: Rival, card: RunningSandbox, purchase: CardPurchase
) -> None:
    await rival.run("DELETE FROM platform_secrets WHERE name = 'card_secret_key'")
    answer = await deliver(tenant.api, purchase.event("invoice.paid"))
    assert (answer.status, answer.code) == (503, "payment_provider_unavailable")
    assert await card.calls("card") == []
    assert await rival.rows("SELECT status FROM payment_receipts") == [("pending",)]


async def test_an_event_that_is_never_delivered_again_heals_by_the_job(
    tenant: Tenant, rival: Rival, card: RunningSandbox, purchase: CardPurchase, work: Context, clock: FakeClock
) -> None:
    await card.misbehave("card", "rate_limited")
    assert (await deliver(tenant.api, purchase.event("invoice.paid"))).status == 503
    await rival.run("UPDATE checkouts SET reread_at = NULL")  # Only the receipt asks.

    assert await reread_card(work) == 0
    clock.advance(minutes=3)
    assert await reread_card(work) == 1

    assert await rival.rows("SELECT status, rereads, reread_at FROM payment_receipts") == [("processed", 1, None)]
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]
