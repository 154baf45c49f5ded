"""What the local provider's payments make: calendar months, one after the other."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from support.billing.subscriptions import PLUS, STUDIO, Buyer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.kit.text.months import add_months

END_OF_JANUARY = datetime(2027, 1, 31, 22, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def stopped(clock: FakeClock) -> None:
    """The clock stands at the end of January."""
    clock.freeze()
    clock.frozen_at = END_OF_JANUARY


async def test_a_payment_entitles_for_its_months(buyer: Buyer) -> None:
    bought = await buyer.buy_prepaid(months=2)

    assert (bought.provider, bought.status, bought.plan_id) == ("local", "active", STUDIO)
    assert bought.current_period_end == datetime(2027, 3, 31, 22, 30, tzinfo=UTC)
    assert await buyer.code_quota() == 1000


async def test_it_is_extended_from_its_end_and_keeps_the_day_of_the_month(buyer: Buyer, clock: FakeClock) -> None:
    first = await buyer.buy_prepaid(months=1)
    assert first.current_period_end == datetime(2027, 2, 28, 22, 30, tzinfo=UTC)
    clock.frozen_at = datetime(2027, 2, 3, tzinfo=UTC)

    second = await buyer.buy_prepaid(months=1)

    assert second.id == first.id
    assert second.current_period_end == datetime(2027, 3, 31, 22, 30, tzinfo=UTC)


async def test_an_extension_on_the_last_moment_continues_and_one_later_begins_anew(
    buyer: Buyer, clock: FakeClock, rival: Rival
) -> None:
    first = await buyer.buy_prepaid(months=1)
    assert first.current_period_end is not None
    clock.frozen_at = first.current_period_end - timedelta(microseconds=1)
    second = await buyer.buy_prepaid(months=1)
    assert second.current_period_end is not None
    assert (second.id, second.current_period_end) == (first.id, datetime(2027, 3, 31, 22, 30, tzinfo=UTC))

    clock.frozen_at = second.current_period_end
    third = await buyer.buy_prepaid(months=1)

    assert third.id != first.id
    assert third.current_period_end == datetime(2027, 4, 30, 22, 30, tzinfo=UTC)
    assert await buyer.statuses() == [("local", "expired"), ("local", "active")]
    statuses = [metadata["status"] for _, _, metadata in await rival.audited("billing.entitlement_changed")]
    assert statuses == ["active", "active", "expired", "active"]


async def test_another_plan_has_a_subscription_of_its_own(buyer: Buyer) -> None:
    codes, audience = await buyer.buy_prepaid(STUDIO), await buyer.buy_prepaid(PLUS)

    assert codes.id != audience.id
    assert await buyer.code_quota() == 1000
    assert await buyer.entitlement("self_service") == (20000, audience.current_period_end, 1)


async def test_two_payments_at_once_both_count(buyer: Buyer, rival: Rival) -> None:
    await buyer.buy_prepaid(months=1)
    first, second = [await buyer.make_checkout("local", months=months) for months in (1, 2)]
    async with rival.holding("SELECT pg_advisory_xact_lock(6, hashtext(%s))", buyer.organization_id):
        paying = [asyncio.create_task(buyer.pay(checkout)) for checkout in (first, second)]
        await rival.until_someone_waits(2)
    await asyncio.gather(*paying)

    ((end,),) = await rival.rows("SELECT current_period_end FROM subscriptions")
    assert end == add_months(END_OF_JANUARY, 4, anchor_day=31)


async def test_a_closure_that_is_requested_while_a_payment_is_counted_sees_it(buyer: Buyer, rival: Rival) -> None:
    checkout = await buyer.make_checkout("local")
    async with rival.holding("SELECT pg_advisory_xact_lock(6, hashtext(%s))", buyer.organization_id):
        paying = await rival.while_waiting(buyer.pay(checkout))
        closing = asyncio.create_task(buyer.begin_closing())
        await rival.until_someone_waits(2)
    await closing

    assert await paying is not None
