"""The job that asks once about each card subscription that an earlier release stored without what was paid."""

import asyncio
from datetime import timedelta

import pytest
from support.billing.card_purchase import CardPurchase, begin_purchase, list_paths, status_of
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.billing.webhooks import subscription_rereads
from soundmark.core.features.billing.webhooks.subscription_rereads import REREADS_MAX, reread_subscriptions

# As the migration leaves a subscription that the release before wrote.
UPGRADE = "UPDATE subscriptions SET paid_through = %s, paid_period_end = %s, paid_invoice_at = NULL, reread_at = %s"
STATE = "SELECT paid_through, reread_at, rereads FROM subscriptions"


async def upgrade(rival: Rival, purchase: CardPurchase, clock: FakeClock) -> None:
    """Let everything be due in half an hour, paid until yesterday."""
    now = clock.freeze()
    yesterday = purchase.began_at - timedelta(days=1)
    await rival.run(UPGRADE, yesterday, yesterday, now + timedelta(minutes=30))


@pytest.fixture
async def purchase(tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock) -> CardPurchase:
    made = await begin_purchase(tenant, rival, card)
    await status_of(tenant.api, made.event("checkout.session.completed"))
    await upgrade(rival, made, clock)
    await card.control("/calls/clear")
    return made


async def test_each_is_asked_about_once_within_an_hour(
    purchase: CardPurchase, work: Context, tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    others = [await begin_purchase(tenant, rival, card) for _ in range(3)]
    for other in others:
        await status_of(tenant.api, other.event("checkout.session.completed"))
    await upgrade(rival, purchase, clock)
    await card.control("/calls/clear")

    for _ in range(60):
        await reread_subscriptions(work)
        clock.advance(minutes=1)

    asked = sorted(await list_paths(card))
    assert asked == sorted(f"/v1/subscriptions/{each.subscription_id}" for each in (purchase, *others))
    ends = sorted(each.period_end for each in (purchase, *others))
    assert await rival.rows(f"{STATE} ORDER BY 1") == [(end, None, 1) for end in ends]


async def test_more_than_are_listed_at_once_are_all_asked_about(
    purchase: CardPurchase,
    work: Context,
    tenant: Tenant,
    rival: Rival,
    card: RunningSandbox,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for _ in range(2):
        await status_of(tenant.api, (await begin_purchase(tenant, rival, card)).event("checkout.session.completed"))
    await upgrade(rival, purchase, clock)
    monkeypatch.setattr(subscription_rereads, "_AT_ONCE", 1)
    clock.advance(minutes=30)
    assert await reread_subscriptions(work) == 3


async def test_what_is_not_due_or_is_over_is_not_asked_about(
    purchase: CardPurchase, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    assert await reread_subscriptions(work) == 0
    clock.advance(minutes=30)
    await rival.run("UPDATE subscriptions SET status = 'cancelled'")
    assert await reread_subscriptions(work) == 0
    assert (await card.calls("card"), purchase.is_paid) == ([], True)


async def test_an_outage_puts_it_off_and_counts_for_nothing(
    purchase: CardPurchase, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    clock.advance(minutes=30)
    await card.misbehave("card", "refused")
    assert await reread_subscriptions(work) == 0
    again_at = clock.now() + timedelta(minutes=4)
    assert await rival.rows(STATE) == [(purchase.began_at - timedelta(days=1), again_at, 1)]
    assert await reread_subscriptions(work) == 0
    await card.control("/switches/reset")
    clock.advance(minutes=4)

    assert await reread_subscriptions(work) == 1

    assert await rival.rows(STATE) == [(purchase.period_end, None, 2)]


async def test_a_provider_that_fails_is_not_asked_about_everything(
    purchase: CardPurchase, work: Context, tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    for _ in range(4):
        await status_of(tenant.api, (await begin_purchase(tenant, rival, card)).event("checkout.session.completed"))
    await upgrade(rival, purchase, clock)
    clock.advance(minutes=30)
    await card.control("/calls/clear")
    await card.misbehave("card", "refused", times=5)
    assert (await reread_subscriptions(work), len(await card.calls("card"))) == (0, 3)


async def test_one_that_the_provider_does_not_have_is_left_alone_after_a_day(
    purchase: CardPurchase, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    await purchase.withdraw(card)
    began_at = clock.now()
    for _ in range(REREADS_MAX):
        clock.advance(hours=1)
        assert await reread_subscriptions(work) == 0
    assert await rival.rows(STATE) == [(purchase.began_at - timedelta(days=1), None, REREADS_MAX)]
    assert timedelta(hours=24) < clock.now() - began_at


async def test_without_a_secret_key_nothing_is_asked_and_it_stays_due(
    purchase: CardPurchase, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    await rival.run("DELETE FROM platform_secrets WHERE name = 'card_secret_key'")
    clock.advance(minutes=30)
    assert (await reread_subscriptions(work), await card.calls("card")) == (0, [])
    assert (await rival.rows(STATE))[0][2] == 0, purchase.checkout_id


async def test_a_status_that_is_ignored_is_an_answer_too(
    purchase: CardPurchase, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    purchase.status = "paused"
    await purchase.publish(card)
    clock.advance(minutes=30)
    assert await reread_subscriptions(work) == 1
    assert await rival.rows(STATE) == [(purchase.began_at - timedelta(days=1), None, 1)]


async def test_of_two_workers_one_asks(
    purchase: CardPurchase, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    clock.advance(minutes=30)
    async with rival.holding("SELECT FROM checkouts FOR UPDATE"):
        both = [asyncio.create_task(reread_subscriptions(work)) for _ in range(2)]
        await rival.until_someone_waits(2)
    assert sorted(await asyncio.gather(*both)) == [0, 1]
    assert len(await card.calls("card")) == 1, purchase.checkout_id


async def test_audience_gets_what_the_migration_stored_even_if_the_provider_says_the_same(
    purchase: CardPurchase, work: Context, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    """The release before had projected the end of a period that is not paid."""
    purchase.status, purchase.is_paid = "past_due", False
    await purchase.publish(card)
    end = clock.now() + timedelta(days=90)
    await rival.run(
        "INSERT INTO plans (id, name, product, monthly_event_quota, active)"
        " VALUES ('plan_events', 'Events', 'audience', 9, true)"
    )
    await rival.run(
        "UPDATE subscriptions SET plan_id = 'plan_events', product = 'audience', audience_mode = 'self_service',"
        " status = 'past_due'"
    )
    await rival.run(
        "INSERT INTO audience_entitlements (organization_id, mode, monthly_event_quota, ends_at, revision, updated_at)"
        " VALUES (%s, 'self_service', 9, %s, 1, now())",
        purchase.organization_id,
        end,
    )
    await rival.run("UPDATE checkouts SET plan_id = 'plan_events', product = 'audience'")
    clock.advance(minutes=30)

    assert await reread_subscriptions(work) == 1

    found = await rival.rows("SELECT ends_at, revision FROM audience_entitlements")
    assert found == [(purchase.began_at + timedelta(days=2), 2)], "three days after yesterday"
