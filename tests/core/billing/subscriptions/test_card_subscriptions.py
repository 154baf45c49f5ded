"""What the card provider says of a subscription, and what the organisation may do for it."""

import asyncio
from datetime import timedelta

import pytest
import structlog
from support.billing.subscriptions import PLUS, STUDIO, Buyer
from support.database.rival import Rival

from soundmark.core.store.billing import subscriptions


async def test_a_paid_subscription_raises_the_quota_of_codes(buyer: Buyer) -> None:
    bought = await buyer.buy_card()

    assert bought.id.startswith("bsu_")
    assert (bought.provider, bought.status, bought.plan_id, bought.audience_mode) == ("card", "active", STUDIO, None)
    assert await buyer.code_quota() == 1000


async def test_a_paid_subscription_enables_self_service_until_three_days_after_what_is_paid(buyer: Buyer) -> None:
    bought = await buyer.buy_card(PLUS)

    assert bought.paid_through is not None
    assert bought.audience_mode == "self_service"
    assert await buyer.entitlement("self_service") == (20000, bought.paid_through + timedelta(days=3), 1)
    assert await buyer.entitlement("contract") is None
    jobs = await buyer.rival.rows("SELECT args FROM procrastinate_jobs WHERE task_name = 'project_entitlement'")
    assert ({"organization_id": buyer.organization_id, "mode": "self_service"},) in jobs


async def test_the_audit_log_names_each_change_and_no_reference(buyer: Buyer, rival: Rival) -> None:
    checkout = await buyer.make_checkout()
    state = buyer.state()
    for each in (state, state, buyer.state(status="past_due", current_period_end=state.current_period_end)):
        await buyer.apply(checkout, each)

    entries = await rival.audited("billing.entitlement_changed")

    assert [(actor, metadata["status"]) for actor, _, metadata in entries] == [
        ("system soundmark", "active"),
        ("system soundmark", "past_due"),
    ]
    assert "sub_" not in str(entries)
    assert "price_" not in str(entries)


async def test_repeating_what_is_known_changes_nothing(buyer: Buyer, rival: Rival) -> None:
    checkout, state = await buyer.make_checkout(plan_id=PLUS), buyer.state()
    first = await buyer.apply(checkout, state)

    assert await buyer.apply(checkout, state) == first

    assert len(await rival.audited("billing.entitlement_changed")) == 1
    entitlement = await buyer.entitlement("self_service")
    assert entitlement is not None
    assert entitlement[2] == 1


async def test_a_renewal_moves_the_end_in_audience_too(buyer: Buyer) -> None:
    checkout = await buyer.make_checkout(plan_id=PLUS)
    await buyer.apply(checkout, buyer.state())
    end = buyer.ctx.clock.now() + timedelta(days=60)

    await buyer.apply(checkout, buyer.state(current_period_end=end))

    assert await buyer.entitlement("self_service") == (20000, end + timedelta(days=3), 2)


@pytest.mark.parametrize(
    ("word", "status", "quota"),
    [("unpaid", "past_due", 1000), ("canceled", "cancelled", 100), ("incomplete_expired", "expired", 100)],
)
async def test_it_becomes_what_the_provider_says(buyer: Buyer, word: str, status: str, quota: int) -> None:
    checkout = await buyer.make_checkout()
    await buyer.apply(checkout, buyer.state())

    await buyer.apply(checkout, buyer.state(status=word))

    assert await buyer.statuses() == [("card", status)]
    assert await buyer.code_quota() == quota


@pytest.mark.parametrize("word", ["incomplete", "something_new"])
async def test_a_status_that_nobody_knows_is_ignored(buyer: Buyer, word: str) -> None:
    checkout = await buyer.make_checkout()
    assert await buyer.apply(checkout, buyer.state(status=word)) is None
    assert await buyer.statuses() == []
    await buyer.apply(checkout, buyer.state())

    assert await buyer.apply(checkout, buyer.state(status=word)) is None

    assert await buyer.statuses() == [("card", "active")]


async def test_a_cancelled_one_ends_in_audience_now(buyer: Buyer) -> None:
    now = buyer.ctx.clock.freeze()  # type: ignore[attr-defined]  # a FakeClock
    checkout = await buyer.make_checkout(plan_id=PLUS)
    await buyer.apply(checkout, buyer.state())

    await buyer.apply(checkout, buyer.state(status="canceled"))

    assert await buyer.entitlement("self_service") == (20000, now, 2)


async def test_the_newest_event_is_remembered_even_if_it_changes_nothing(buyer: Buyer, rival: Rival) -> None:
    """Reading again without an event counts whenever it happens, and does not make older events newer."""
    now = buyer.ctx.clock.now()
    checkout = await buyer.make_checkout()
    await buyer.apply(checkout, buyer.state(current_period_end=now))
    await buyer.apply(checkout, buyer.state(current_period_end=now), event_at=now)
    await buyer.apply(checkout, buyer.state(current_period_end=now), event_at=None)

    assert await rival.rows("SELECT last_event_at FROM subscriptions") == [(now,)]
    assert len(await rival.audited("billing.entitlement_changed")) == 1


async def test_another_price_moves_it_to_that_plan(buyer: Buyer) -> None:
    now = buyer.ctx.clock.freeze()  # type: ignore[attr-defined]  # a FakeClock
    checkout = await buyer.make_checkout(plan_id=STUDIO)
    await buyer.apply(checkout, buyer.state())

    moved = await buyer.apply(checkout, buyer.state(prices=(f"price_{PLUS}",)))

    assert moved is not None
    assert (moved.plan_id, moved.product, moved.audience_mode) == (PLUS, "audience", "self_service")
    assert await buyer.code_quota() == 100
    end = now + timedelta(days=33)
    assert await buyer.entitlement("self_service") == (20000, end, 1)

    await buyer.apply(checkout, buyer.state())

    assert await buyer.code_quota() == 1000
    assert await buyer.entitlement("self_service") == (20000, now, 2)


async def test_during_closure_nothing_is_restored(buyer: Buyer) -> None:
    checkout = await buyer.make_checkout(plan_id=PLUS)
    await buyer.apply(checkout, buyer.state())
    await buyer.apply(checkout, buyer.state(status="canceled"))
    before = await buyer.entitlement("self_service")
    await buyer.begin_closing()

    assert await buyer.apply(checkout, buyer.state(status="active")) is None

    assert await buyer.statuses() == [("card", "cancelled")]
    assert await buyer.entitlement("self_service") == before


@pytest.mark.parametrize(("word", "status"), [("canceled", "cancelled"), ("incomplete_expired", "expired")])
async def test_during_closure_it_may_end_and_audience_hears_of_it(buyer: Buyer, word: str, status: str) -> None:
    now = buyer.ctx.clock.freeze()  # type: ignore[attr-defined]  # a FakeClock
    checkout = await buyer.make_checkout(plan_id=PLUS)
    await buyer.apply(checkout, buyer.state())
    await buyer.begin_closing()

    ended = await buyer.apply(checkout, buyer.state(status=word))

    assert ended is not None
    assert ended.status == status
    assert await buyer.entitlement("self_service") == (20000, now, 2)


async def test_during_closure_a_renewal_extends_nothing_and_is_for_a_person(buyer: Buyer) -> None:
    checkout = await buyer.make_checkout()
    bought = await buyer.apply(checkout, buyer.state(cancel_at_period_end=True))
    assert bought is not None
    assert bought.current_period_end is not None
    await buyer.begin_closing()

    with structlog.testing.capture_logs() as lines:
        await buyer.apply(checkout, buyer.state(current_period_end=bought.current_period_end + timedelta(days=30)))

    async with buyer.ctx.db.transaction(tenant=buyer.organization_id) as tx:
        now = await subscriptions.find(tx, buyer.organization_id, bought.id)
        assert await subscriptions.has_unending_card(tx, buyer.organization_id, "codes")
        assert not await subscriptions.has_unending_card(tx, buyer.organization_id, "audience")
    assert now is not None
    assert now.current_period_end == bought.current_period_end
    assert now.cancel_at_period_end is False, "the gates judge it"
    assert "payment_during_closure" in [line["event"] for line in lines]


async def test_the_highest_of_several_counts_and_then_the_next(buyer: Buyer) -> None:
    """A contract and two purchases; self-service and contract are counted apart."""
    await buyer.rival.run("UPDATE plans SET monthly_code_quota = 50 WHERE id = 'plan_codes_starter'")
    small = await buyer.buy_prepaid(STUDIO)
    await buyer.rival.run("UPDATE plans SET monthly_code_quota = 700 WHERE id = %s", STUDIO)
    assert small.plan_id == STUDIO
    assert await buyer.code_quota() == 700
    checkout = await buyer.make_checkout(plan_id=STUDIO)
    await buyer.apply(checkout, buyer.state())
    await buyer.apply(checkout, buyer.state(status="canceled"))
    assert await buyer.code_quota() == 700, "what is prepaid still entitles"


async def test_two_that_change_one_subscription_take_turns(buyer: Buyer, rival: Rival) -> None:
    """The second sees what the first has made, so there is one subscription."""
    first, second = await buyer.make_checkout(), await buyer.make_checkout()
    state = buyer.state()
    async with rival.holding("SELECT pg_advisory_xact_lock(6, hashtext(%s))", buyer.organization_id):
        applying = [asyncio.create_task(buyer.apply(checkout, state)) for checkout in (first, second)]
        await rival.until_someone_waits(2)
    one, other = await asyncio.gather(*applying)

    assert one is not None
    assert other is not None
    assert one.id == other.id
    assert await buyer.statuses() == [("card", "active")]
