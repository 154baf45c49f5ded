"""A card subscription entitles until three days after what was paid, whatever its status says."""

from dataclasses import replace
from datetime import timedelta

import pytest
import structlog
from support.billing.subscriptions import LARGE, PLUS, STUDIO, Buyer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.core.features.billing.subscriptions.jobs import refresh_ended_entitlements

NEVER_SOLD = ("price_that_nobody_sold",)


async def test_a_price_that_we_do_not_sell_keeps_the_plan_until_what_was_paid_has_ended(
    buyer: Buyer, clock: FakeClock
) -> None:
    """It is paid from month to month, which pays for nothing of ours; nor are there three days more."""
    now = clock.freeze()
    checkout = await buyer.make_checkout(plan_id=PLUS)
    await buyer.apply(checkout, buyer.state())
    clock.advance(days=29)

    with structlog.testing.capture_logs() as lines:
        moved = await buyer.apply(checkout, buyer.state(prices=NEVER_SOLD))

    assert "card_price_unknown" in [line["event"] for line in lines]
    end = now + timedelta(days=30)
    assert moved is not None
    assert (moved.plan_id, moved.status, moved.paid_through) == (PLUS, "active", end)
    assert await buyer.entitlement("self_service") == (20000, end, 2)
    clock.advance(days=1)
    integration = buyer.tenant.integration_body(mode="self_service")
    refused = await buyer.tenant.api.post("/v1/audience/integrations", json=integration)
    assert (refused.status, refused.code) == (409, "entitlement_required")


async def test_a_larger_plan_begins_once_it_is_paid(buyer: Buyer) -> None:
    checkout = await buyer.make_checkout()
    await buyer.apply(checkout, buyer.state())
    larger = buyer.state(prices=(f"price_{LARGE}",), is_paid=False)
    assert larger.latest_invoice is not None
    invoice = replace(larger.latest_invoice, status="open")
    await buyer.apply(checkout, buyer.state(prices=larger.prices, status="past_due", latest_invoice=invoice))
    assert await buyer.code_quota() == 1000

    await buyer.apply(checkout, buyer.state(prices=larger.prices))

    assert await buyer.code_quota() == 5000


async def test_a_larger_plan_does_not_begin_without_the_latest_invoice(buyer: Buyer) -> None:
    checkout = await buyer.make_checkout()
    await buyer.apply(checkout, buyer.state())
    await buyer.apply(checkout, buyer.state(prices=(f"price_{LARGE}",), latest_invoice=None))
    assert await buyer.code_quota() == 1000


async def test_a_smaller_plan_begins_at_once(buyer: Buyer) -> None:
    checkout = await buyer.make_checkout(plan_id=LARGE)
    await buyer.apply(checkout, buyer.state())
    assert await buyer.code_quota() == 5000

    await buyer.apply(checkout, buyer.state(prices=(f"price_{STUDIO}",), is_paid=False, status="past_due"))

    assert await buyer.code_quota() == 1000


async def test_a_plan_of_the_other_product_begins_once_it_is_paid(buyer: Buyer) -> None:
    """Codes and events cannot be compared."""
    checkout = await buyer.make_checkout(plan_id=LARGE)
    await buyer.apply(checkout, buyer.state())
    moved = await buyer.apply(checkout, buyer.state(prices=(f"price_{PLUS}",), is_paid=False))
    assert moved is not None
    assert moved.plan_id == LARGE


@pytest.mark.parametrize("word", ["canceled", "incomplete_expired"])
async def test_what_is_over_keeps_its_last_value_and_entitles_to_nothing(
    buyer: Buyer, clock: FakeClock, word: str
) -> None:
    checkout = await buyer.make_checkout()
    bought = await buyer.apply(checkout, buyer.state())
    assert bought is not None
    clock.advance(days=1)
    ended = await buyer.apply(checkout, buyer.state(status=word))
    assert ended is not None
    assert (ended.status in {"cancelled", "expired"}, ended.paid_through) == (True, bought.paid_through)
    assert await buyer.code_quota() == 100


async def test_audience_hears_of_the_end_by_time_and_the_audit_log_does_not(
    buyer: Buyer, clock: FakeClock, rival: Rival
) -> None:
    """Audience has the end from the beginning, and refuses by its own clock."""
    now = clock.freeze()
    await buyer.buy_card(PLUS)
    end = now + timedelta(days=33)
    assert await buyer.entitlement("self_service") == (20000, end, 1)
    clock.advance(days=40)

    assert await refresh_ended_entitlements(buyer.ctx) == 0

    assert await buyer.entitlement("self_service") == (20000, end, 1)
    assert len(await rival.audited("billing.entitlement_changed")) == 1


async def test_after_what_was_paid_at_a_price_of_nobody_the_next_subscription_counts(
    buyer: Buyer, clock: FakeClock
) -> None:
    """The job that carries on judges such a subscription without the three days."""
    now = clock.freeze()
    await buyer.rival.run("UPDATE plans SET monthly_event_quota = 900 WHERE id = %s", PLUS)
    checkout = await buyer.make_checkout(plan_id=PLUS)
    await buyer.apply(checkout, buyer.state())
    await buyer.apply(checkout, buyer.state(prices=NEVER_SOLD))
    prepaid = await buyer.buy_prepaid(PLUS, months=3)
    await buyer.rival.run(
        "UPDATE audience_entitlements SET ends_at = %s, monthly_event_quota = 901", now + timedelta(days=30)
    )
    clock.advance(days=30)

    assert await refresh_ended_entitlements(buyer.ctx) == 1

    assert await buyer.entitlement("self_service") == (900, prepaid.paid_through, 4)


async def test_during_closure_a_failed_renewal_is_no_payment(buyer: Buyer) -> None:
    checkout = await buyer.make_checkout()
    bought = await buyer.apply(checkout, buyer.state(cancel_at_period_end=True))
    assert bought is not None
    await buyer.begin_closing()

    with structlog.testing.capture_logs() as lines:
        end = bought.paid_through
        assert end is not None
        await buyer.apply(
            checkout, buyer.state(status="past_due", is_paid=False, current_period_end=end + timedelta(days=30))
        )

    assert "payment_during_closure" not in [line["event"] for line in lines]
