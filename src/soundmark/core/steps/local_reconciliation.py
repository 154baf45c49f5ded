"""Asking the local provider about the payment of a checkout, and believing only its answer.

A reconciliation has three phases. If a process dies after one of them, the receipt of the notification, or the
checkout, is still pending; the next notification, or a job, begins again:

1. Record the notification as pending, and count the verification against the limit of all processes.
2. Ask the provider about the payment.
3. Apply its answer in one transaction, under the checkout's lock, and mark the notification as processed last. If it
   says that the payment is unpaid, store only when it was asked: for ten seconds, nobody asks again.

`local_notifications` and `rereads` do phase 1.
"""

from datetime import datetime
from typing import Final, Literal, TypeAlias

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.checkout import Checkout
from soundmark.core.domain.billing.local_limit import VerificationShare, limit_of_share
from soundmark.core.domain.billing.payment import VerifiedPayment
from soundmark.core.domain.billing.payment_receipt import ReceiptStatus
from soundmark.core.problems import PaymentNotVerified
from soundmark.core.providers.flouci.client import LocalPayment, LocalPaymentMissing
from soundmark.core.steps.invoices import schedule_invoice
from soundmark.core.steps.subscriptions import extend_prepaid
from soundmark.core.store.billing import checkouts, local_verifications, plans, receipts
from soundmark.core.store.tenancy import organizations
from soundmark.kit.postgres.transaction import Tx

LocalVerdict: TypeAlias = Literal["paid", "failed", "expired", "pending", "not_verified"]

# The provider's words, exactly as it writes them. All others leave the payment pending.
_VERDICTS: Final[dict[str, LocalVerdict]] = {"SUCCESS": "paid", "FAILURE": "failed", "EXPIRED": "expired"}
_log: Final = structlog.get_logger()


def judge_payment(checkout: Checkout, payment: LocalPayment) -> LocalVerdict:
    """Return what a payment means for its checkout; `not_verified` if it is not exactly the payment of this checkout.

    Source: contract, section 7.
    """
    verdict = _VERDICTS.get(payment.status, "pending") if payment.is_success else "pending"
    if verdict == "pending":
        return verdict
    is_ours = payment.tracking_id == checkout.id and payment.amount_minor == checkout.amount_minor
    return verdict if is_ours else "not_verified"


async def count_verification(ctx: Context, tx: Tx, share: VerificationShare, *, now: datetime) -> bool:
    """Count one verification; return False if this minute's limit of the share is reached, for all processes together.

    The last lock of its transaction, so that processes wait for each other as briefly as possible.
    """
    limit = limit_of_share(ctx.local_verifications_per_minute, share)
    return await local_verifications.insert_or_count(tx, share, minute=minute_of(now), limit=limit)


def minute_of(now: datetime) -> datetime:
    """Return the minute in which a verification is counted."""
    return now.replace(second=0, microsecond=0)


async def reconcile(ctx: Context, checkout: Checkout, payment_id: str) -> ReceiptStatus:
    """Do phases 2 and 3; return what became of the payment and of its receipt, if it has one.

    Raises: PaymentNotVerified and PaymentProviderUnavailable, whereupon everything stays pending; DatabaseUnavailable.
    Source: API v1, "Inbound provider webhooks"; contract, section 7.
    """
    asked_at = ctx.clock.now()
    try:
        verdict = judge_payment(checkout, await ctx.local.verify(payment_id))
    except LocalPaymentMissing:
        verdict = "pending"
    if verdict == "not_verified":
        # For the operator: somebody paid, but not for this checkout.
        _log.warning("local_payment_disagrees", organization_id=checkout.organization_id, checkout_id=checkout.id)
        raise PaymentNotVerified
    if verdict == "pending":
        async with ctx.db.transaction(tenant=checkout.organization_id) as tx:
            await checkouts.update_unpaid(tx, checkout, asked_at=asked_at)
        return "pending"
    async with ctx.db.transaction(tenant=checkout.organization_id) as tx:
        await organizations.hold_open(tx, checkout.organization_id)
        locked = await checkouts.lock(tx, checkout.organization_id, checkout.id)
        if locked is None:
            return "ignored"  # The organisation was deleted with everything in it.
        now = ctx.clock.now()
        if verdict == "paid":
            await _apply_payment(ctx, tx, locked, payment_id, now=now)
        else:
            await checkouts.update_ended(tx, locked, status=verdict)
        await note_processed(tx, locked, payment_id, now=now)
    return "processed"


async def note_processed(tx: Tx, checkout: Checkout, payment_id: str, *, now: datetime) -> None:
    """Mark the receipt of the payment's notification, if there is one."""
    await receipts.update_outcome(
        tx,
        "local",
        payment_id,
        status="processed",
        amount_minor=checkout.amount_minor,
        currency=checkout.currency,
        now=now,
    )


async def _apply_payment(ctx: Context, tx: Tx, checkout: Checkout, payment_id: str, *, now: datetime) -> None:
    """Extend what a locked checkout prepays, once, and complete it, whatever its status was: the money was taken."""
    if checkout.status == "completed":
        return
    period = await extend_prepaid(ctx, tx, checkout, now=now)
    await checkouts.update_completed(tx, checkout, now=now)
    if period is None:
        return
    plan = await plans.find(tx, checkout.plan_id)
    assert plan is not None, "no plan is ever deleted"
    assert checkout.amount_minor is not None, "a checkout of the local provider has an amount"
    assert checkout.currency is not None, "and a currency"
    payment = VerifiedPayment(
        checkout_id=checkout.id,
        key=payment_id,
        amount_minor=checkout.amount_minor,
        currency=checkout.currency,
        plan_name=plan.name,
        period_start=period.begins_at,
        period_end=period.ends_at,
    )
    await schedule_invoice(ctx, tx, period.subscription, payment, now=now)
