"""A card provider that is slow, down or confused: the answer is 503, the receipt stays pending, nothing is lost."""

from typing import Any

import pytest
from support.billing.card_purchase import CardPurchase, begin_purchase, deliver, status_of
from support.database.rival import Rival
from support.outside.card_stand_in import CardStandIn
from support.outside.outside_server import Fault
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.billing.webhooks.rereads import reread_card

RECEIPTS = "SELECT status, processed_at, checkout_id, organization_id, reread_at IS NOT NULL FROM payment_receipts"


@pytest.fixture
async def purchase(tenant: Tenant, rival: Rival, card: CardStandIn) -> CardPurchase:
    return await begin_purchase(tenant, rival, card)


async def require_pending_then_healed(
    tenant: Tenant, rival: Rival, card: CardStandIn, purchase: CardPurchase, event: dict[str, Any]
) -> None:
    answer = await deliver(tenant.api, event)
    assert (answer.status, answer.code) == (503, "payment_provider_unavailable")
    assert await rival.rows(RECEIPTS) == [("pending", None, purchase.checkout_id, tenant.organization_id, True)]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []

    card.faults.clear()
    assert await status_of(tenant.api, event) == "processed"
    assert await rival.rows("SELECT status FROM payment_receipts") == [("processed",)]
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]


FAULTS: list[Fault] = ["refused", "limited", "html", "not_an_object", "lost"]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_provider_that_does_not_answer_as_documented(
    tenant: Tenant, rival: Rival, card: CardStandIn, purchase: CardPurchase, fault: Fault
) -> None:
    card.faults.extend([fault] * 4)  # More often than the client tries.
    await require_pending_then_healed(tenant, rival, card, purchase, purchase.event("invoice.paid"))


OTHER_OBJECTS: list[dict[str, Any]] = [{"id": "sub_MARKanother"}, {"items": None}]


@pytest.mark.parametrize("changes", OTHER_OBJECTS, ids=str)
async def test_a_provider_that_answers_with_another_object(
    tenant: Tenant, card: CardStandIn, purchase: CardPurchase, changes: dict[str, Any]
) -> None:
    event = purchase.event("invoice.paid")
    card.objects[purchase.subscription_id] = purchase.subscription(**changes)
    answer = await deliver(tenant.api, event)
    assert (answer.status, answer.code) == (503, "payment_provider_unavailable")
    assert "MARK" not in answer.body.decode()
    purchase.publish(card)
    assert await status_of(tenant.api, event) == "processed"


async def test_an_object_that_the_provider_does_not_have(
    tenant: Tenant, card: CardStandIn, purchase: CardPurchase
) -> None:
    """The event is signed, so the secret key is that of another account. Once it is corrected, the event counts."""
    event = purchase.event("invoice.paid")
    kept = card.objects.pop(purchase.subscription_id)
    answer = await deliver(tenant.api, event)
    assert (answer.status, answer.code) == (503, "payment_provider_unavailable")
    card.objects[purchase.subscription_id] = kept
    assert await status_of(tenant.api, event) == "processed"


async def test_without_a_secret_key_events_wait(
    tenant: Tenant, rival: Rival, card: CardStandIn, purchase: CardPurchase
) -> None:
    await rival.run("DELETE FROM platform_secrets WHERE name = 'card_secret_key'")
    answer = await deliver(tenant.api, purchase.event("invoice.paid"))
    assert (answer.status, answer.code) == (503, "payment_provider_unavailable")
    assert card.received == []
    assert await rival.rows("SELECT status FROM payment_receipts") == [("pending",)]


async def test_an_event_that_is_never_delivered_again_heals_by_the_job(
    tenant: Tenant, rival: Rival, card: CardStandIn, purchase: CardPurchase, work: Context, clock: FakeClock
) -> None:
    card.faults.append("limited")
    assert (await deliver(tenant.api, purchase.event("invoice.paid"))).status == 503
    await rival.run("UPDATE checkouts SET reread_at = NULL")  # Only the receipt asks.

    assert await reread_card(work) == 0
    clock.advance(minutes=3)
    assert await reread_card(work) == 1

    assert await rival.rows("SELECT status, rereads, reread_at FROM payment_receipts") == [("processed", 1, None)]
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]
