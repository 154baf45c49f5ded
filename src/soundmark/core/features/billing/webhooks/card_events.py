"""Recording an event of the card provider, and reconciling what it is about: phase 1 of `card_reconciliation`."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.card_event import CARD_EVENTS, CardEvent, names_checkout
from soundmark.core.domain.billing.checkout import FIRST_REREAD, Checkout
from soundmark.core.domain.billing.payment_receipt import PaymentReceipt, ReceiptStatus
from soundmark.core.steps.card_reconciliation import CardRead, reconcile
from soundmark.core.store.billing import checkouts, receipts, references
from soundmark.core.store.tenancy import organizations

CardOutcome: TypeAlias = Literal["processed", "pending", "ignored", "repeated"]

# The receipt of an ignored event may be deleted for its age, and another delivery may process the event.
_ATTEMPTS_MAX: Final = 3
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _ReceivedEvent:
    """What phase 1 found."""

    receipt: PaymentReceipt
    checkout: Checkout | None
    number: int | None


async def receive_event(ctx: Context, event: CardEvent, *, body_digest: bytes) -> CardOutcome:
    """Reconcile what a verified event is about; `repeated` if it was processed before.

    Safe to repeat, in any order and concurrently. An event that was ignored is judged again when it is delivered again,
    since what it names may be there by now.

    Raises: PaymentProviderUnavailable, whereupon the receipt stays pending; DatabaseUnavailable.
    Source: API v1, "Inbound provider webhooks"; contract, section 7.
    """
    bound = await _find_bound(ctx, event)
    named = names_checkout(event.metadata)
    if bound is not None and event.session is None:
        # It may name no checkout, as before basil, or another one. The subscription was bound when it was first paid.
        named = bound
    begun = await _begin(ctx, event, body_digest, named=named)
    if begun.receipt.status == "processed":
        return "repeated"
    if begun.checkout is None or begun.number is None or event.subject is None:
        return await _ignore(ctx, event)
    is_bound = bound == (begun.checkout.organization_id, begun.checkout.id)
    return await reconcile(ctx, CardRead(begun.checkout, begun.number, event, is_bound=is_bound))


async def _find_bound(ctx: Context, event: CardEvent) -> tuple[str, str] | None:
    """Return the organisation and the checkout that the event's subscription is bound to; phase 3 judges it again."""
    if event.subscription_reference is None:
        return None
    async with ctx.db.snapshot() as tx:
        owner = await references.find(tx, "card_subscription", event.subscription_reference)
    return None if owner is None else (owner.organization_id, owner.subject_id)


async def _begin(
    ctx: Context, event: CardEvent, body_digest: bytes, *, named: tuple[str, str] | None
) -> _ReceivedEvent:
    """Do phase 1 for the organisation and the checkout that are `named`."""
    for _ in range(_ATTEMPTS_MAX):
        begun = await _find_or_insert(ctx, event, body_digest, named=named)
        if begun is not None:
            return begun
    raise AssertionError("A receipt that was just inserted is too young to be deleted.")


async def _find_or_insert(
    ctx: Context, event: CardEvent, body_digest: bytes, *, named: tuple[str, str] | None
) -> _ReceivedEvent | None:
    """Make the receipt of an event pending, and find what it is about. Lock order: docs/locks.md.

    Return None if another transaction deleted or processed an ignored one between two statements.
    """
    organization_id, checkout_id = named or ("", "")
    now = ctx.clock.now()
    async with ctx.db.transaction(tenant=organization_id or None) as tx:
        async with tx.pipeline() as send:
            # Held first, so that the organisation of a new receipt is not deleted meanwhile.
            send(organizations.hold_open(tx, organization_id))
            send(
                receipts.insert_if_new(
                    tx,
                    provider="card",
                    event_id=event.id,
                    event_type=event.type,
                    body_digest=body_digest,
                    organization_id=organization_id,
                    checkout_id=checkout_id,
                    reread_at=now + FIRST_REREAD,
                    now=now,
                )
            )
            receipt = send(receipts.find(tx, "card", event.id))
            checkout = send(checkouts.find(tx, organization_id, checkout_id))
        found = receipt.result()
        if found is None:
            return None
        number = None
        if found.status != "processed" and checkout.result() is not None:
            number = await checkouts.update_reads_begun(tx, organization_id, checkout_id)
            if found.status == "ignored":
                # What it names is there by now, so it is pending again until the provider has answered.
                is_pending = await receipts.update_outcome(
                    tx,
                    "card",
                    event.id,
                    status="pending",
                    organization_id=organization_id,
                    checkout_id=checkout_id,
                    reread_at=now + FIRST_REREAD,
                    now=now,
                )
                if not is_pending:
                    return None
        return _ReceivedEvent(found, checkout.result(), number)


async def _ignore(ctx: Context, event: CardEvent) -> ReceiptStatus:
    """Record that nothing is done for an event of another type, or about an object that is not ours."""
    if event.type in CARD_EVENTS and event.subject is None:
        _log.warning("card_event_unreadable", type=event.type)
    elif names_checkout(event.metadata) is not None:
        _log.warning("card_event_unmatched", type=event.type)
    async with ctx.db.transaction() as tx:
        await receipts.update_outcome(tx, "card", event.id, status="ignored", now=ctx.clock.now())
    return "ignored"
