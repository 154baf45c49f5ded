"""Scheduling the draft invoice of a verified payment."""

import hashlib
from datetime import datetime
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.accounting import DRAFT_PREFIX, TRIED_FOR, DraftInvoice, describe_period
from soundmark.core.domain.billing.payment import VerifiedPayment
from soundmark.core.domain.billing.subscription import Subscription
from soundmark.core.store.billing import accounting_customers, outbox
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint
from soundmark.settings.registry import InvoiceSyncSettings

MAKE_DRAFT: Final = "make_draft_invoice"  # The job that makes a draft invoice: `features.billing.accounting.jobs`.
_log: Final = structlog.get_logger()


async def schedule_invoice(
    ctx: Context, tx: Tx, subscription: Subscription, payment: VerifiedPayment, *, now: datetime
) -> None:
    """Queue the draft invoice of a payment, once, however often the payment is confirmed.

    There is none while drafts are switched off, for an organisation without a third party, for a payment in another
    currency than the accounting system's, and for one of nothing. The caller has locked the subscription. Lock order:
    docs/locks.md.

    Source: API v1, "Billing", accounting worker; contract, section 7, "Accounting".
    """
    if payment.amount_minor <= 0 or payment.currency != ctx.accounting_currency:
        return
    if not (await ctx.platform_settings.read_within(tx, InvoiceSyncSettings)).accounting_enable_invoice_sync:
        return
    organization_id = subscription.organization_id
    if await accounting_customers.find_thirdparty_id(tx, organization_id) is None:
        return
    draft = _make_draft(mint(ctx.entropy, DRAFT_PREFIX), subscription, payment, now)
    is_new = await outbox.insert_if_new(tx, draft, payment_digest=hashlib.sha256(payment.key.encode()).digest())
    if is_new:
        await defer_draft(ctx, tx, organization_id=organization_id, outbox_id=draft.id)
        _log.info("draft_invoice_scheduled", outbox_id=draft.id)


async def defer_draft(ctx: Context, tx: Tx, *, organization_id: str, outbox_id: str) -> None:
    """Make the draft invoice in a job, once the transaction has committed."""
    await ctx.queue.defer(tx, MAKE_DRAFT, lock=outbox_id, organization_id=organization_id, outbox_id=outbox_id)


def _make_draft(outbox_id: str, subscription: Subscription, payment: VerifiedPayment, now: datetime) -> DraftInvoice:
    return DraftInvoice(
        organization_id=subscription.organization_id,
        id=outbox_id,
        subscription_id=subscription.id,
        checkout_id=payment.checkout_id,
        description=describe_period(payment.plan_name, payment.period_start, payment.period_end),
        amount_minor=payment.amount_minor,
        currency=payment.currency,
        period_start=payment.period_start,
        period_end=payment.period_end,
        status="pending",
        attempts=0,
        due_at=now,
        give_up_at=now + TRIED_FOR,
        created_at=now,
        posted_invoice_id=None,
    )
