"""A checkout is pending until its payment is verified, has failed or a day is over; money that was taken counts.

Source: API v1, "States and transitions", "Billing checkout"; contract, section 7.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, precondition, rule
from support.api.app_machine import AppMachine, run_machine
from support.api.core_client import Api
from support.billing.local_purchase import PATH, list_payments, notify, set_payment
from support.billing.offers import LOCAL_OFFER, make_local_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import make_tenant

from soundmark.core.context import Context
from soundmark.core.features.billing.checkouts.jobs import expire_checkouts
from soundmark.kit.crypto.secret import Secret

pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
PENDING_MAX = 10
OUTCOMES = {"SUCCESS": "completed", "FAILURE": "failed", "EXPIRED": "expired"}


@dataclass
class Purchase:
    """What must be true of one checkout."""

    id: str
    payment_id: str
    expires_at: datetime
    status: str = "pending"
    outcome: str | None = None
    is_settled: bool = False

    def shown(self, now: datetime) -> str:
        """Return its status, which is judged by the clock before the job has run."""
        return "expired" if self.status == "pending" and now >= self.expires_at else self.status


class Checkouts(AppMachine):
    """One organisation that buys from the local provider."""

    purchases = Bundle("purchases")

    def __init__(self, loop: asyncio.AbstractEventLoop, api: Api, local: RunningSandbox, ctx: Context) -> None:
        super().__init__(loop, api.clock)
        self.api, self.local, self.ctx = api, local, ctx
        self.made: list[Purchase] = []

    @initialize()
    def begin(self) -> None:
        self.tenant = self.wait(make_tenant(self.api))

    @precondition(lambda self: sum(each.status == "pending" for each in self.made) < PENDING_MAX)
    @rule(target=purchases)
    def buy(self) -> Purchase:
        body = {"offer_id": LOCAL_OFFER}
        answer = self.wait(self.api.post("/v1/billing/checkouts", params=self.tenant.query, json=body))
        assert answer.status == 201, answer.body
        (payment_id,) = [
            payment["id"]
            for payment in self.wait(list_payments(self.local))
            if payment["tracking_id"] == answer.json["id"]
        ]
        # Whatever the time: the model says when a payment expires.
        self.wait(set_payment(self.local, payment_id, answer={"status": "PENDING"}))
        purchase = Purchase(answer.json["id"], payment_id, self.now + timedelta(hours=24))
        self.made.append(purchase)
        return purchase

    @rule(purchase=purchases, status=st.sampled_from([*OUTCOMES, "PENDING"]))
    def reach_an_outcome(self, purchase: Purchase, status: str) -> None:
        self.wait(set_payment(self.local, purchase.payment_id, answer={"status": status}))
        purchase.outcome = OUTCOMES.get(status)

    @rule(purchase=purchases)
    def be_notified(self, purchase: Purchase) -> None:
        self.clock.advance(minutes=1)  # Sooner, an unpaid payment is not asked about again, and there are limits.
        answer = self.wait(notify(self.api, PATH, params={"payment_id": purchase.payment_id}))
        assert answer.status == 200, answer.body
        outcome = purchase.outcome
        if purchase.is_settled or outcome is not None:
            assert answer.json == {"status": "processed"}
        else:
            assert answer.json == {"status": "pending"}
        if not purchase.is_settled and outcome is not None:
            purchase.is_settled = True
            if outcome == "completed" or purchase.status == "pending":
                purchase.status = outcome

    @rule(purchase=purchases)
    def give_up(self, purchase: Purchase) -> None:
        self.clock.advance(minutes=1)  # As above.
        path = f"/v1/billing/checkouts/{purchase.id}/cancel"
        answer = self.wait(self.api.post(path, params=self.tenant.query))
        if purchase.shown(self.now) == "pending" and purchase.outcome is None:
            assert answer.code == "checkout_not_cancellable"
            return
        if purchase.shown(self.now) == "pending" and purchase.outcome is not None:
            purchase.status, purchase.is_settled = purchase.outcome, True
        assert (answer.status, answer.json["status"]) == (200, purchase.shown(self.now))

    @rule(hours=st.sampled_from([1, 12, 24]))
    def wait_for_hours(self, hours: int) -> None:
        self.clock.advance(hours=hours)

    @rule()
    def expire(self) -> None:
        self.wait(expire_checkouts(self.ctx))
        for purchase in self.made:
            purchase.status = purchase.shown(self.now)

    @invariant()
    def each_has_its_status(self) -> None:
        for purchase in self.made:
            answer = self.wait(self.api.get(f"/v1/billing/checkouts/{purchase.id}", params=self.tenant.query))
            assert answer.json["status"] == purchase.shown(self.now)

    @invariant()
    def what_was_paid_is_granted_once(self) -> None:
        paid_count = sum(purchase.status == "completed" for purchase in self.made)
        listed = self.wait(self.api.get("/v1/billing/subscriptions", params=self.tenant.query)).json["data"]
        assert len(listed) == min(paid_count, 1)
        if listed:
            end = datetime.fromisoformat(listed[0]["current_period_end"])
            began = datetime.fromisoformat(listed[0]["created_at"])
            assert (end.year - began.year, end.month) == (paid_count, began.month)


@pytest.fixture
async def work(database_url: Secret, local: RunningSandbox, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of a worker."""
    async with make_worker(database_url, clock, LOCAL_API_URL=local.settings()["LOCAL_API_URL"]) as ctx:
        yield ctx


async def test_every_walk_through_the_states_of_checkouts_is_as_specified(
    api: Api, rival: Rival, local: RunningSandbox, work: Context
) -> None:
    await make_local_offer(rival)
    await run_machine(lambda loop: Checkouts(loop, api, local, work), examples=12, steps=15)
