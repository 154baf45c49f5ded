"""Subscriptions of an organisation, while payments, the card provider, an operator and time have their say.

Source: API v1, "Subscription entitlement"; contract, section 7, what entitles.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, precondition, rule
from support.api.app_machine import AppMachine, run_machine
from support.api.core_client import Api
from support.billing.subscriptions import CONTRACT_PLAN, LARGE, PLUS, STUDIO, Buyer, make_plans
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import make_tenant

from soundmark.core.context import Context
from soundmark.core.domain.billing.card import CardSubscription
from soundmark.core.domain.billing.checkout import Checkout
from soundmark.core.features.billing.subscriptions.jobs import end_subscriptions, refresh_ended_entitlements
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.months import add_months
from soundmark.kit.text.timestamps import format_timestamp

pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
WORDS = {"trialing": "trialing", "active": "active", "past_due": "past_due", "unpaid": "past_due",
         "canceled": "cancelled", "incomplete_expired": "expired", "incomplete": None, "paused": None}  # fmt: skip
LIVE = ("trialing", "active", "past_due")
QUOTAS = {STUDIO: 1000, LARGE: 5000, PLUS: 20000, CONTRACT_PLAN: 5000}
MODES = {STUDIO: "codes", LARGE: "codes", PLUS: "self_service", CONTRACT_PLAN: "contract"}


@dataclass(frozen=True)
class Heard:
    """What the card provider says: times are in days from now, and a plan of None is a price that nobody sold."""

    plan_id: str | None
    is_paid: bool
    end_days: int
    invoice_days: int
    trial_days: int | None

    def end(self, now: datetime) -> datetime:
        return now + timedelta(days=self.end_days)

    def invoiced_at(self, now: datetime) -> datetime:
        return now + timedelta(days=self.invoice_days)

    def trial_end(self, now: datetime) -> datetime | None:
        return None if self.trial_days is None else now + timedelta(days=self.trial_days)


HEARD = st.builds(
    Heard,
    plan_id=st.sampled_from([STUDIO, LARGE, PLUS, None]),
    is_paid=st.booleans(),
    end_days=st.sampled_from([-5, -1, 20, 40]),
    invoice_days=st.sampled_from([-20, 0]),
    trial_days=st.sampled_from([None, None, -10, 5]),
)


@dataclass
class Model:
    """What must be true of one subscription; `end` is what it is paid through."""

    provider: str
    plan_id: str
    status: str
    end: datetime | None
    event_at: datetime | None = None
    began_on: int = 1
    is_price_known: bool = True
    invoice_end: datetime | None = None
    invoice_at: datetime | None = None

    def entitles(self, now: datetime) -> bool:
        if self.entitled_until is None:
            return self.status in LIVE and self.provider == "contract"
        return self.status in LIVE and now < self.entitled_until

    @property
    def entitled_until(self) -> datetime | None:
        is_late_allowed = self.provider == "card" and self.is_price_known
        return self.end + timedelta(days=3) if self.end is not None and is_late_allowed else self.end

    def hear(self, heard: Heard, now: datetime) -> None:
        """Go by what the card provider says of payments."""
        self.is_price_known = heard.plan_id is not None
        if heard.plan_id is None:
            return
        if heard.is_paid and (self.invoice_at is None or heard.invoiced_at(now) >= self.invoice_at):
            self.invoice_at, self.invoice_end = heard.invoiced_at(now), heard.end(now)
        ends = [each for each in (self.invoice_end, heard.trial_end(now)) if each is not None]
        self.end = max(ends, default=None)

    def move_to(self, plan_id: str | None, *, is_paid: bool) -> None:
        """Go by the price: to a smaller plan of the same product at once, to another only once it is paid."""
        if plan_id is not None and (
            is_paid or (MODES[plan_id] == MODES[self.plan_id] and QUOTAS[plan_id] < QUOTAS[self.plan_id])
        ):
            self.plan_id = plan_id

    def shown(self, now: datetime, *, is_swept: bool) -> str:
        """Return its status; a job has expired what is over, if it has run."""
        is_over = self.provider != "card" and self.status in LIVE and self.end is not None and self.end <= now
        return "expired" if is_over and is_swept else self.status


@dataclass
class Card:
    """A card checkout, and the provider's subscription that it led to."""

    checkout: Checkout
    state: CardSubscription
    model: Model | None = None


class Subscriptions(AppMachine):
    """One organisation that buys, pays, cancels and may be closed."""

    cards = Bundle("cards")

    def __init__(self, loop: asyncio.AbstractEventLoop, api: Api, rival: Rival, ctx: Context) -> None:
        super().__init__(loop, api.clock)
        self.api, self.rival, self.ctx = api, rival, ctx
        self.models: list[Model] = []
        self.prepaid: dict[str, Model] = {}
        self.contracts: dict[str, Model] = {}
        self.is_closing = False

    @initialize()
    def begin(self) -> None:
        tenant = self.wait(make_tenant(self.api))
        self.buyer = Buyer(tenant, self.rival, self.ctx)

    @rule(target=cards, plan_id=st.sampled_from([STUDIO, PLUS]))
    def check_out(self, plan_id: str) -> Card:
        checkout = self.wait(self.buyer.make_checkout("card", plan_id))
        return Card(checkout, self.buyer.state())

    @rule(card=cards, word=st.sampled_from(sorted(WORDS)), heard=HEARD, ago=st.sampled_from([None, 0, 30]))
    def hear_of_the_card(self, card: Card, word: str, heard: Heard, ago: int | None) -> None:
        event_at = None if ago is None else self.now - timedelta(hours=ago)
        state = self._state_of(card, word, heard)
        self.wait(self.buyer.apply(card.checkout, state, event_at=event_at))
        model, status = card.model, WORDS[word]
        if model is not None and event_at is not None and model.event_at is not None and event_at < model.event_at:
            return
        if status is None or (self.is_closing and (model is None or status in LIVE)):
            return
        if model is None:
            if status == "expired":
                return
            model = card.model = Model("card", card.checkout.plan_id, status, None)
            self.models.append(model)
            model.hear(heard, self.now)
        elif status in LIVE:
            model.hear(heard, self.now)
        model.move_to(heard.plan_id, is_paid=heard.is_paid)
        model.status = status
        model.event_at = max((each for each in (event_at, model.event_at) if each is not None), default=None)

    @rule(plan_id=st.sampled_from([STUDIO, PLUS]), months=st.sampled_from([1, 2]))
    def pay_in_advance(self, plan_id: str, months: int) -> None:
        checkout = self.wait(self.buyer.make_checkout("local", plan_id, months=months))
        self.wait(self.buyer.pay(checkout))
        if self.is_closing:
            return
        model = self.prepaid.get(plan_id)
        if model is None or not model.entitles(self.now):
            if model is not None:
                model.status = "expired"
            model = self.prepaid[plan_id] = Model("local", plan_id, "active", self.now, began_on=self.now.day)
            self.models.append(model)
        assert model.end is not None
        model.end = add_months(model.end, months, anchor_day=model.began_on)

    @rule(reference=st.sampled_from(["A", "B"]), days=st.sampled_from([None, 10]))
    def grant(self, reference: str, days: int | None) -> None:
        end = None if days is None else self.now + timedelta(days=days)
        written = {} if end is None else {"period_end": end.isoformat()}
        answer = self.wait(self.buyer.put_contract(self._named(reference), **written))
        if self.is_closing:
            assert (answer.status, answer.code) == (409, "resource_deletion_in_progress")
            return
        assert answer.status == 200
        for other in self.contracts.values():
            other.status = "cancelled" if other.status == "active" else other.status
        model = self.contracts.get(reference)
        if model is None:
            model = self.contracts[reference] = Model("contract", CONTRACT_PLAN, "active", end)
            self.models.append(model)
        model.status, model.end = "active", end

    @rule(reference=st.sampled_from(["A", "B"]))
    def withdraw(self, reference: str) -> None:
        answer = self.wait(self.buyer.put_contract(self._named(reference), status="cancelled"))
        if reference not in self.contracts:
            assert (answer.status, answer.code) == (404, "not_found")
            return
        assert answer.status == 200
        self.contracts[reference].status = "cancelled"  # It keeps what it was paid through.

    @rule(days=st.sampled_from([1, 3, 9, 28]))
    def wait_for_days(self, days: int) -> None:
        self.clock.advance(days=days)

    @rule()
    def run_the_jobs(self) -> None:
        self.wait(end_subscriptions(self.ctx))
        self.wait(refresh_ended_entitlements(self.ctx))
        for model in self.models:
            model.status = model.shown(self.now, is_swept=True)

    @precondition(lambda self: len(self.models) > 2 and not self.is_closing)
    @rule()
    def begin_closing(self) -> None:
        self.wait(self.buyer.begin_closing())
        self.is_closing = True

    @invariant()
    def each_has_its_status(self) -> None:
        expected = sorted((model.provider, model.status) for model in self.models)
        assert sorted(self.wait(self.buyer.statuses())) == expected

    @invariant()
    def each_is_paid_through(self) -> None:
        found = self.wait(self.api.get("/v1/billing/subscriptions", params=self.buyer.tenant.query)).json["data"]
        shown = sorted((each["provider"], each["paid_through"] or "") for each in found)
        ends = [(model.provider, "" if model.end is None else format_timestamp(model.end)) for model in self.models]
        assert shown == sorted(ends)

    @invariant()
    def the_highest_quota_counts(self) -> None:
        usage = self.wait(self.api.get("/v1/usage", params=self.buyer.tenant.query)).json
        quotas = [QUOTAS[each.plan_id] for each in self._entitling("codes")]
        assert usage["codes"]["monthly_quota"] == max([100, *quotas])

    @invariant()
    def audience_has_what_entitles(self) -> None:
        """An entitlement in Audience never lasts longer than what it follows from."""
        for mode in ("self_service", "contract"):
            live = list(self._entitling(mode))
            stored = self.wait(self.buyer.entitlement(mode))
            holds = stored is not None and (stored[1] is None or self.now < stored[1])
            if not live:
                assert not holds
            elif holds and not self.is_closing:
                assert stored is not None
                assert stored[0] == QUOTAS[live[0].plan_id]
                ends = [each.entitled_until for each in live]
                assert stored[1] is None or stored[1] in ends

    def _entitling(self, mode: str) -> list[Model]:
        return [each for each in self.models if MODES[each.plan_id] == mode and each.entitles(self.now)]

    def _state_of(self, card: Card, word: str, heard: Heard) -> CardSubscription:
        state = self.buyer.state(
            reference=card.state.reference,
            status=word,
            is_paid=heard.is_paid,
            prices=("price_that_nobody_sold" if heard.plan_id is None else f"price_{heard.plan_id}",),
            current_period_end=heard.end(self.now),
            trial_end=heard.trial_end(self.now),
        )
        assert state.latest_invoice is not None
        invoice = replace(state.latest_invoice, created_at=heard.invoiced_at(self.now))
        return replace(state, latest_invoice=invoice)

    def _named(self, reference: str) -> str:
        return f"{reference}-{self.buyer.organization_id}"


@pytest.fixture
async def work(database_url: Secret, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of a worker."""
    async with make_worker(database_url, clock) as ctx:
        yield ctx


async def test_every_walk_through_the_states_of_subscriptions_is_as_specified(
    api: Api, rival: Rival, work: Context
) -> None:
    await make_plans(rival)
    await run_machine(lambda loop: Subscriptions(loop, api, rival, work), examples=15, steps=15)
