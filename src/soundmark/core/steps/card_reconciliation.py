"""Making a checkout and its card subscription what the provider says that they are.

A reconciliation has three phases. If a process dies after one of them, the receipt of the event, or the checkout, is
still pending; the next delivery, or a job, begins again:

1. Record the event as pending, find its checkout, and take a number for the read that follows, in one transaction.
2. Read the subscription from the provider, and the session if only that can show that it was paid.
3. Apply what was read in one transaction, under the checkout's lock, and mark the event as processed last.

`card_events` and `rereads` do phase 1.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.card import CardSubscription
from soundmark.core.domain.billing.card_event import (
    CardEvent,
    CardFacts,
    find_disagreement,
    gather_facts,
    is_paid_session,
)
from soundmark.core.domain.billing.checkout import Checkout
from soundmark.core.domain.billing.paid_through import SoldPrices, list_prices
from soundmark.core.domain.billing.payment import VerifiedPayment
from soundmark.core.domain.billing.payment_receipt import ReceiptStatus
from soundmark.core.domain.billing.subscription import Subscription
from soundmark.core.problems import PaymentProviderUnavailable
from soundmark.core.providers.stripe.client import CardObjectMissing
from soundmark.core.steps.invoices import schedule_invoice
from soundmark.core.steps.subscriptions import apply_card
from soundmark.core.store.billing import card_customers, checkouts, offers, plans, receipts, references, subscriptions
from soundmark.core.store.tenancy import organizations
from soundmark.kit.postgres.transaction import Tx

_ENDED_UNPAID: Final = frozenset({"canceled", "incomplete_expired"})
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CardRead:
    """A read of the provider's objects that is about to begin.

    `checkout` is as it was before the read. `number` orders the reads of one checkout. `is_bound` says that the
    subscription is known to belong to the checkout. `event` is None if a job asks.
    """

    checkout: Checkout
    number: int
    event: CardEvent | None
    is_bound: bool


async def reconcile(ctx: Context, read: CardRead) -> ReceiptStatus:
    """Do phases 2 and 3; return what became of the event, or of the checkout that a job asks about.

    Raises: PaymentProviderUnavailable, whereupon everything stays pending; DatabaseUnavailable.
    Source: contract, section 7, card events.
    """
    facts = await _read_facts(ctx, read)
    organization_id, event = read.checkout.organization_id, read.event
    async with ctx.db.transaction(tenant=organization_id) as tx:
        is_open = await organizations.hold_open(tx, organization_id)
        checkout = await checkouts.lock(tx, organization_id, read.checkout.id)
        if checkout is None:
            return "ignored"  # The organisation was deleted with everything in it.
        now = ctx.clock.now()
        status: ReceiptStatus = "pending"
        if facts is not None:
            status = await _apply(ctx, tx, checkout, read, facts, is_open=is_open, now=now)
        if event is not None:
            await _note_outcome(tx, checkout, event, status, now=now)
    return status


async def _read_facts(ctx: Context, read: CardRead) -> CardFacts | None:
    """Do phase 2; return None if nothing was paid yet.

    Raises: PaymentProviderUnavailable.
    """
    checkout, event = read.checkout, read.event
    session = event.session if event is not None else None
    if session is not None and not is_paid_session(session):
        return None
    reference = checkout.subscription_reference if event is None else event.subscription_reference
    try:
        if reference is None and checkout.provider_reference is not None:
            session = await ctx.card.read_session(checkout.provider_reference)
            reference = session.subscription if is_paid_session(session) else None
        if reference is None:
            return None
        facts = gather_facts(event, session, await ctx.card.read_subscription(reference))
        if not read.is_bound and not facts.is_paid and checkout.provider_reference is not None:
            # Its latest invoice is open. Whether an earlier one was paid, the session knows.
            session = await ctx.card.read_session(checkout.provider_reference)
            facts = gather_facts(event, session, facts.subscription)
    except CardObjectMissing:
        # The provider told us of this object, so the credential must be that of another account.
        _log.warning("card_object_missing", organization_id=checkout.organization_id, checkout_id=checkout.id)
        raise PaymentProviderUnavailable from None
    return facts


async def _apply(
    ctx: Context, tx: Tx, checkout: Checkout, read: CardRead, facts: CardFacts, *, is_open: bool, now: datetime
) -> ReceiptStatus:
    """Apply what was read to a locked checkout. Lock order: docs/locks.md."""
    state = facts.subscription
    owner = await references.find(tx, "card_subscription", state.reference)
    is_first = owner is None
    if owner is None:
        disagreement = find_disagreement(checkout, facts)
        if disagreement is not None:
            return _refuse(checkout, disagreement)
        if not facts.is_paid:
            return "ignored" if state.status in _ENDED_UNPAID else "pending"
        owner = await references.insert_or_find(
            tx,
            "card_subscription",
            state.reference,
            organization_id=checkout.organization_id,
            subject_id=checkout.id,
        )
    if (owner.organization_id, owner.subject_id) != (checkout.organization_id, checkout.id):
        return _refuse(checkout, "subscription_of_another_checkout")
    if is_first:
        await _bind(tx, checkout, facts, now=now)
    subscription = await _apply_state(ctx, tx, checkout, read, state, now=now)
    if subscription is not None:
        await _schedule_invoices(ctx, tx, checkout, subscription, facts, now=now)
    is_completed = checkout.status != "completed" and facts.is_paid
    if is_completed:
        await checkouts.update_completed(tx, checkout, now=now)
    # In an organisation that is being deleted nothing is granted, but there is nothing left to do either.
    return "processed" if subscription is not None or is_completed or not is_open else "ignored"


async def _apply_state(
    ctx: Context, tx: Tx, checkout: Checkout, read: CardRead, state: CardSubscription, *, now: datetime
) -> Subscription | None:
    """Make the subscription what was read, unless a later read was applied; return it, None if nothing was granted.

    An event that is older than the newest one changes nothing either, which `apply_card` judges.
    """
    if read.number < checkout.read_applied:
        current = await subscriptions.find_by_reference(tx, checkout.organization_id, state.reference)
        if current is not None:
            return current
    sold = await _find_sold_prices(tx, checkout, state)
    event_at = None if read.event is None else read.event.created_at
    subscription = await apply_card(ctx, tx, checkout, state, sold=sold, event_at=event_at, now=now)
    # What an older event has read was not applied, so it must not outdate a read that began before it.
    if subscription is None or event_at in {None, subscription.last_event_at}:
        await checkouts.update_read_applied(tx, checkout, max(read.number, checkout.read_applied))
    return subscription


async def _find_sold_prices(tx: Tx, checkout: Checkout, state: CardSubscription) -> SoldPrices:
    """Return the plans of the prices that the provider named and we sell: that of the checkout, and those of offers."""
    assert checkout.price_reference is not None, "a checkout of the card provider has a price"
    own = {checkout.price_reference: checkout.plan_id}
    others = list_prices(state) - own.keys()
    return own if not others else await offers.find_plan_ids(tx, sorted(others)) | own


async def _bind(tx: Tx, checkout: Checkout, facts: CardFacts, *, now: datetime) -> None:
    """Note which subscription the checkout led to, and who the provider's customer of the organisation is."""
    await checkouts.update_subscription_reference(tx, checkout, facts.subscription.reference)
    if facts.customer is None:
        return
    owner = await references.insert_or_find(
        tx,
        "card_customer",
        facts.customer,
        organization_id=checkout.organization_id,
        subject_id=checkout.organization_id,
    )
    if owner.organization_id != checkout.organization_id:
        # The payment counts, but the customer's portal would show purchases of the other organisation.
        _log.warning(
            "card_customer_of_another_organization",
            organization_id=checkout.organization_id,
            checkout_id=checkout.id,
        )
        return
    await card_customers.insert_or_update(tx, checkout.organization_id, customer_reference=facts.customer, now=now)


async def _schedule_invoices(
    ctx: Context, tx: Tx, checkout: Checkout, subscription: Subscription, facts: CardFacts, *, now: datetime
) -> None:
    """Schedule the draft of each invoice that was paid; of one that has a draft already, nothing."""
    for invoice in facts.paid_invoices:
        plan = await plans.find(tx, subscription.plan_id)
        assert plan is not None, "no plan is ever deleted"
        line = invoice.last_line
        payment = VerifiedPayment(
            checkout_id=checkout.id,
            key=invoice.reference,
            amount_minor=invoice.amount_paid_minor,
            currency=invoice.currency,
            plan_name=plan.name,
            period_start=(line.period_start if line else facts.subscription.current_period_start) or now,
            period_end=(line.period_end if line else facts.subscription.current_period_end) or now,
        )
        await schedule_invoice(ctx, tx, subscription, payment, now=now)


async def _note_outcome(tx: Tx, checkout: Checkout, event: CardEvent, status: ReceiptStatus, *, now: datetime) -> None:
    """Mark the receipt of the event."""
    invoice = event.paid_invoice
    await receipts.update_outcome(
        tx,
        "card",
        event.id,
        status=status,
        organization_id=checkout.organization_id,
        checkout_id=checkout.id,
        amount_minor=None if invoice is None else invoice.amount_paid_minor,
        currency=None if invoice is None else invoice.currency,
        now=now,
    )


def _refuse(checkout: Checkout, reason: str) -> ReceiptStatus:
    """Warn the operator that the payment is for something else than the checkout sells."""
    _log.warning(
        "card_payment_disagrees", organization_id=checkout.organization_id, checkout_id=checkout.id, reason=reason
    )
    return "ignored"
