"""Phase 3 of making a checkout: storing its page, or that it failed."""

import contextlib
from dataclasses import replace
from datetime import datetime
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.checkout import FIRST_REREAD, Checkout, CheckoutPage
from soundmark.core.features.billing.checkouts.wire import render_created
from soundmark.core.problems import OrganizationNotFound, PaymentProviderUnavailable
from soundmark.core.providers.stripe.client import CardObjectMissing
from soundmark.core.store.billing import checkouts, references
from soundmark.core.store.codes import issuance_receipts
from soundmark.core.store.tenancy import organizations
from soundmark.kit.postgres.transaction import Tx

_log: Final = structlog.get_logger()


async def finish(ctx: Context, checkout: Checkout, page: CheckoutPage | None) -> bytes:
    """Carry out phase 3, and return the response.

    Raises: PaymentProviderUnavailable; OrganizationNotFound if the organisation was deleted in the meantime.
    """
    organization_id = checkout.organization_id
    async with ctx.db.transaction(tenant=organization_id) as tx:
        await organizations.hold_open(tx, organization_id)  # A reference refers to its row.
        found = await checkouts.lock(tx, organization_id, checkout.id)
        if found is None:
            raise OrganizationNotFound
        now = ctx.clock.now()
        answer = await _find_answer(tx, found, now)
        if answer is None:
            answer = await _store(tx, found, page, now)
    if answer is not None:
        return answer
    if page is not None:
        await _close_page(ctx, checkout, page)
    raise PaymentProviderUnavailable


async def fail_without_page(tx: Tx, checkout: Checkout) -> None:
    """Fail a locked checkout that has no page, if it is pending, and free its idempotency key."""
    assert not checkout.has_page, "what can be paid is not failed here"
    if checkout.status != "pending":
        return  # Its key may be another checkout's by now.
    await checkouts.update_without_page(tx, checkout)
    if checkout.key_digest is not None:
        await issuance_receipts.delete_unanswered(tx, checkout.organization_id, checkout.key_digest)


async def _find_answer(tx: Tx, checkout: Checkout, now: datetime) -> bytes | None:
    """Return the response that another request with the same key has stored in the meantime."""
    if checkout.key_digest is None or not checkout.has_page:
        return None
    receipts = await issuance_receipts.find(tx, checkout.organization_id, [checkout.key_digest])
    receipt = receipts.get(checkout.key_digest)
    return receipt.answer or None if receipt is not None and receipt.is_kept(now) else None


async def _store(tx: Tx, checkout: Checkout, page: CheckoutPage | None, now: datetime) -> bytes | None:
    """Store the page and return the response; None for a checkout that failed or expired, which gets no page."""
    if page is None or checkout.status_at(now) in {"failed", "expired"}:
        if not checkout.has_page:
            await fail_without_page(tx, checkout)
        return None
    if checkout.provider == "local" and not await _own_payment(tx, checkout, page.reference):
        await fail_without_page(tx, checkout)
        return None
    await checkouts.update_page(tx, checkout, page, reread_at=now + FIRST_REREAD)
    answer = render_created(replace(checkout, provider_reference=page.reference), page, now)
    if checkout.key_digest is not None:
        await issuance_receipts.update_answer(tx, checkout.organization_id, checkout.key_digest, answer)
    return answer


async def _own_payment(tx: Tx, checkout: Checkout, payment_id: str) -> bool:
    """Make a payment of the local provider the checkout's; return False if it is another checkout's already."""
    owner = await references.insert_or_find(
        tx, "local_payment", payment_id, organization_id=checkout.organization_id, subject_id=checkout.id
    )
    return (owner.organization_id, owner.subject_id) == (checkout.organization_id, checkout.id)


async def _close_page(ctx: Context, checkout: Checkout, page: CheckoutPage) -> None:
    """Close a page that nobody will see, if the provider can."""
    _log.info("checkout_page_closed", checkout_id=checkout.id)
    if checkout.provider == "card":
        with contextlib.suppress(PaymentProviderUnavailable, CardObjectMissing):
            await ctx.card.expire_session(page.reference)
