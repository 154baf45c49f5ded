"""The job that reads the card provider's own list of events."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

from support.billing.card_purchase import SEVEN_EVENTS, CardPurchase, begin_purchase, list_paths, put_object, status_of
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.billing.webhooks.missed_events import poll_card_events


async def list_events(card: RunningSandbox, *events: Any) -> None:
    """Let the provider list these events, of which the last is the newest."""
    page = {"object": "list", "data": list(reversed(events)), "has_more": False}
    await put_object(card, "/v1/events", page)


async def asked_since(card: RunningSandbox) -> list[int]:
    """Return since when each list was requested."""
    queries = [call["query"] for call in await card.calls("card") if call["operation"] == "list_events"]
    return [int(parse_qs(query)["created[gte]"][0]) for query in queries]


async def test_a_missed_event_is_reconciled_once(
    purchase: CardPurchase, work: Context, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    event = purchase.event("invoice.paid")
    await list_events(card, event)

    assert await poll_card_events(work) == 1
    assert await poll_card_events(work) == 0

    assert await rival.rows("SELECT event_id, status FROM payment_receipts") == [(event["id"], "processed")]
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]
    assert await status_of(tenant.api, event) == "processed"


async def test_events_that_were_delivered_lead_to_nothing(
    purchase: CardPurchase, work: Context, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    events = [purchase.event(kind) for kind in SEVEN_EVENTS]
    for event in events:
        await status_of(tenant.api, event)
    before = await rival.rows("SELECT * FROM payment_receipts ORDER BY event_id")
    await list_events(card, *events)
    await card.control("/calls/clear")

    assert await poll_card_events(work) == 0

    assert await list_paths(card) == ["/v1/events"]
    assert await rival.rows("SELECT * FROM payment_receipts ORDER BY event_id") == before


async def test_a_poll_begins_before_the_end_of_the_last_one(
    work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    first = clock.freeze()
    await list_events(card)
    for later in (timedelta(), timedelta(minutes=15), timedelta(days=60)):
        clock.shift = later
        await poll_card_events(work)

    overlap = timedelta(minutes=15)
    expected = [first - overlap, first - overlap, first + timedelta(days=60 - 25)]
    assert await asked_since(card) == [int(moment.timestamp()) for moment in expected]
    assert await rival.rows("SELECT polled_until FROM payment_event_polls") == [(first + timedelta(days=60),)]


async def test_a_provider_that_fails_is_asked_again_from_the_same_time(
    purchase: CardPurchase, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    clock.freeze()
    await list_events(card)
    await poll_card_events(work)
    await list_events(card, purchase.event("invoice.paid"))
    clock.advance(minutes=15)
    await card.misbehave("card", "rate_limited")
    assert await poll_card_events(work) == 0

    assert await poll_card_events(work) == 1

    since = await asked_since(card)
    assert since[1] == since[2]
    assert await rival.rows("SELECT status FROM subscriptions") == [("active",)]


async def test_an_event_that_cannot_be_reconciled_holds_up_no_later_one(
    purchase: CardPurchase, work: Context, tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    """Its receipt stays pending, and the job that asks again asks about it."""
    moment = clock.freeze()
    odd, good = purchase.event("invoice.paid"), (await begin_purchase(tenant, rival, card)).event("invoice.paid")
    await list_events(card, odd, good)
    await purchase.withdraw(card)

    assert await poll_card_events(work) == 1

    receipts = await rival.rows("SELECT event_id, status, reread_at IS NOT NULL FROM payment_receipts")
    assert set(receipts) == {(odd["id"], "pending", True), (good["id"], "processed", False)}
    assert await rival.rows("SELECT polled_until FROM payment_event_polls") == [(moment,)]


async def test_a_poll_ends_when_the_provider_fails_about_three_subscriptions_in_a_row(
    tenant: Tenant, work: Context, rival: Rival, card: RunningSandbox
) -> None:
    """One purchase alone has several events, so they count once."""
    purchases = [await begin_purchase(tenant, rival, card) for _ in range(4)]
    await list_events(card, *[purchase.event(kind) for purchase in purchases for kind in SEVEN_EVENTS])
    for purchase in purchases:
        await purchase.withdraw(card)

    assert await poll_card_events(work) == 0

    asked = {path for path in await list_paths(card) if path.startswith("/v1/subscriptions/")}
    assert asked == {f"/v1/subscriptions/{purchase.subscription_id}" for purchase in purchases[:3]}
    assert await rival.rows("SELECT 1 FROM payment_event_polls") == []


async def test_a_provider_without_a_list_of_events_is_no_fault(
    work: Context, rival: Rival, card: RunningSandbox
) -> None:
    await put_object(card, "/v1/events", {})
    assert await poll_card_events(work) == 0
    assert await rival.rows("SELECT count(*) FROM payment_event_polls") == [(1,)]


async def test_what_is_no_event_in_the_list_is_passed_over(
    purchase: CardPurchase, work: Context, card: RunningSandbox
) -> None:
    await list_events(card, {"id": "evt_odd", "object": "charge"}, purchase.event("invoice.paid"))
    assert await poll_card_events(work) == 1


async def test_without_credentials_nothing_is_asked(work: Context, rival: Rival, card: RunningSandbox) -> None:
    await rival.run("DELETE FROM platform_secrets")
    assert (await poll_card_events(work), await card.calls("card")) == (0, [])
    assert await rival.rows("SELECT 1 FROM payment_event_polls") == []
