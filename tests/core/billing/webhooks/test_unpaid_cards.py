"""Signed events of a card that was paid once and never again: what was paid ends, and three days later the quota."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from support.billing.card_purchase import CardPurchase, begin_purchase, status_of, unix
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.kit.text.timestamps import format_timestamp

STARTER, STUDIO = 100, 1000
NEVER_SOLD = "price_MARKneverSold"


@dataclass
class PaidOnce:
    """A purchase whose first month is paid."""

    purchase: CardPurchase
    tenant: Tenant
    card: RunningSandbox
    events_count: int = 0

    async def hear(self, kind: str = "customer.subscription.updated", **changes: Any) -> str:
        """Let the provider change the subscription and tell us."""
        self.events_count += 1
        self.purchase.changes.update(changes)
        await self.purchase.publish(self.card)
        at = self.purchase.began_at + timedelta(seconds=self.events_count)
        return await status_of(self.tenant.api, self.purchase.event(kind, at=at))

    def begin_month(self, number: int, **changes: Any) -> dict[str, Any]:
        """Return the members of a subscription whose month `number` has begun, with its invoice, which is open."""
        begins_at = self.purchase.began_at + timedelta(days=30 * number)
        ends_at = begins_at + timedelta(days=30)
        period = {"current_period_start": unix(begins_at), "current_period_end": unix(ends_at)}
        invoice = self.purchase.invoice(
            id=f"in_MARKmonth{number}",
            created=unix(begins_at),
            status="open",
            amount_paid=0,
            lines={
                "object": "list",
                "data": [self.purchase.line(period={"start": unix(begins_at), "end": unix(ends_at)})],
            },
        )
        item = {"id": "si_1", "price": {"id": self.purchase.price}, **period}
        return {"items": {"object": "list", "data": [item]}, "latest_invoice": {**invoice, **changes}}

    async def state(self) -> tuple[str, str | None, int]:
        """Return status, end of what is paid, and quota."""
        query = self.tenant.query
        (found,) = (await self.tenant.api.get("/v1/billing/subscriptions", params=query)).json["data"]
        usage = (await self.tenant.api.get("/v1/usage", params=query)).json
        return found["status"], found["paid_through"], usage["codes"]["monthly_quota"]


@pytest.fixture
async def once(tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock) -> PaidOnce:
    """A subscription whose first period is paid."""
    clock.freeze()
    purchase = await begin_purchase(tenant, rival, card)
    found = PaidOnce(purchase, tenant, card)
    assert await status_of(tenant.api, purchase.event("checkout.session.completed")) == "processed"
    assert await found.state() == ("active", format_timestamp(purchase.period_end), STUDIO)
    return found


async def test_a_card_that_never_pays_again_keeps_its_quota_for_three_days(once: PaidOnce, clock: FakeClock) -> None:
    """The second attack's fourth: every renewal fails, and each moves the period a month ahead."""
    paid_through = format_timestamp(once.purchase.period_end)
    clock.advance(days=30)
    for number in range(1, 5):
        once.purchase.status = "past_due"
        assert await once.hear("invoice.payment_failed", **once.begin_month(number)) == "processed"
        assert await once.state() == ("past_due", paid_through, STUDIO)
    once.purchase.status = "unpaid"
    await once.hear()
    assert await once.state() == ("past_due", paid_through, STUDIO)

    clock.advance(days=3)

    assert await once.state() == ("past_due", paid_through, STARTER)
    once.purchase.status, once.purchase.price = "active", NEVER_SOLD
    await once.hear(**once.begin_month(5, status="paid"))
    assert await once.state() == ("active", paid_through, STARTER)


async def test_a_price_that_was_never_sold_is_paid_in_vain(once: PaidOnce, clock: FakeClock) -> None:
    """It entitles until what was paid of ours has ended, and for no day more."""
    paid_through = format_timestamp(once.purchase.period_end)
    once.purchase.price = NEVER_SOLD
    await once.hear(**once.begin_month(1, status="paid", amount_paid=1))
    assert await once.state() == ("active", paid_through, STUDIO)

    clock.advance(days=30)

    assert await once.state() == ("active", paid_through, STARTER)


async def test_a_paused_collection_pays_for_nothing(once: PaidOnce, clock: FakeClock) -> None:
    """The subscription stays active, whatever becomes of its invoices: test_paid_through_rules.py has each status."""
    clock.advance(days=30)
    await once.hear(pause_collection={"behavior": "void", "resumes_at": None}, **once.begin_month(1, status="void"))
    assert (await once.state())[2] == STUDIO
    clock.advance(days=3)
    assert await once.state() == ("active", format_timestamp(once.purchase.period_end), STARTER)


async def test_the_status_paused_is_ignored_with_everything_that_comes_with_it(
    once: PaidOnce, clock: FakeClock
) -> None:
    """A trial that ended without a card."""
    once.purchase.status = "paused"
    assert await once.hear(**once.begin_month(1, status="paid")) == "ignored"
    clock.advance(days=33)
    assert await once.state() == ("active", format_timestamp(once.purchase.period_end), STARTER)


async def test_a_payment_after_all_restores_it(once: PaidOnce, clock: FakeClock) -> None:
    clock.advance(days=40)
    once.purchase.status = "past_due"
    await once.hear("invoice.payment_failed", **once.begin_month(1))
    assert (await once.state())[2] == STARTER

    once.purchase.status = "active"
    await once.hear("invoice.paid", **once.begin_month(1, status="paid", amount_paid=10_555))

    paid_through = format_timestamp(once.purchase.period_end + timedelta(days=30))
    assert await once.state() == ("active", paid_through, STUDIO)


async def test_an_event_of_a_paid_invoice_grants_nothing_that_the_provider_does_not_confirm(
    once: PaidOnce, clock: FakeClock
) -> None:
    """An event is a trigger: what counts is the latest invoice of the answer."""
    clock.advance(days=33)
    once.purchase.status = "past_due"
    once.purchase.changes.update(once.begin_month(1))
    await once.purchase.publish(once.card)
    paid = once.begin_month(1, status="paid", amount_paid=10_555)["latest_invoice"]
    event = once.purchase.event("invoice.paid", at=once.purchase.began_at + timedelta(days=33), **paid)

    assert await status_of(once.tenant.api, event) == "processed"

    assert (await once.state())[2] == STARTER
