"""Making a checkout, in three phases (docs/adr/0021).

1. Judge the caller, the idempotency key and the offer, and insert the checkout as `pending`, in one transaction.
2. Ask the provider for a page, with nothing locked.
3. Store the page and the response under the idempotency key, or that the checkout failed, in one transaction.

A process may die anywhere. Then the checkout is pending without a page, until the same request is sent again, which
resumes at phase 2, or a job fails it.
"""

import contextlib
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.checkout import (
    CHECKOUT_PREFIX,
    FIRST_REREAD,
    PENDING_MAX,
    Checkout,
    CheckoutPage,
    Purchase,
    begin_checkout,
)
from soundmark.core.domain.codes.receipt import Attempt, Receipt
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.billing.checkouts.failing import fail_without_page
from soundmark.core.features.billing.checkouts.pages import open_page
from soundmark.core.features.billing.checkouts.wire import render_created
from soundmark.core.problems import (
    CheckoutNotFound,
    OfferNotFound,
    OrganizationNotFound,
    PaymentProviderUnavailable,
    SubscriptionActive,
)
from soundmark.core.providers.stripe.client import CardObjectMissing
from soundmark.core.steps import audit
from soundmark.core.steps.idempotency import find_result
from soundmark.core.steps.tenancy import hold_authority, require_open_organization
from soundmark.core.store.billing import card_customers, checkouts, purchases, references, subscriptions
from soundmark.core.store.codes import code_entitlements, issuance_receipts
from soundmark.core.store.tenancy import organizations
from soundmark.kit.http.problems import RateLimited
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint, mint_secret

_SECOND: Final = timedelta(seconds=1)
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Begun:
    """A checkout after phase 1.

    `customer` is the card provider's reference of the organisation. `local_secret` is part of the address at which the
    local provider notifies Core; None for a checkout that an earlier request began.
    """

    checkout: Checkout
    customer: str | None = field(repr=False)
    local_secret: str | None = field(repr=False)


async def create_checkout(ctx: Context, scope: TenantScope, offer_id: str, attempt: Attempt | None) -> bytes:
    """Make a checkout and return the response, which has the address of the provider's page.

    A request that repeats one of the last 24 hours with its idempotency key gets the same response. If that request
    has not ended, or its process died, it is resumed: the card provider answers with the same page, while the local
    provider, which would make a second one, is not called again.

    Raises: OfferNotFound; SubscriptionActive; RateLimited for too many pending checkouts; ValidationFailed for a
        malformed key; IdempotencyConflict; ResourceDeletionInProgress; PaymentProviderUnavailable, which fails the
        checkout and frees the key.
    Source: contract, section 7, "Offers, checkouts, subscriptions".
    """
    begun = await _begin(ctx, scope, offer_id, attempt)
    if isinstance(begun, bytes):
        return begun
    try:
        page = await open_page(
            ctx, begun.checkout, email=scope.user.email, customer=begun.customer, local_secret=begun.local_secret
        )
    except PaymentProviderUnavailable:
        page = None
    return await _finish(ctx, begun.checkout, page)


async def find_answered(ctx: Context, scope: TenantScope, attempt: Attempt) -> None:
    """Judge the idempotency key of a malformed request.

    Raises: ValidationFailed for a malformed key; IdempotencyConflict.
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        receipts = await issuance_receipts.find(tx, scope.organization_id, [attempt.key_digest])
    find_result(receipts, attempt, ctx.clock.now())


async def get_checkout(ctx: Context, scope: TenantScope, checkout_id: str) -> Checkout:
    """Return a checkout of the organisation.

    Raises: CheckoutNotFound.
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        found = await checkouts.find(tx, scope.organization_id, checkout_id)
    if found is None:
        raise CheckoutNotFound
    return found


async def _begin(ctx: Context, scope: TenantScope, offer_id: str, attempt: Attempt | None) -> Begun | bytes:
    """Carry out phase 1; return the stored response of a repeated request."""
    organization_id = scope.organization_id
    async with ctx.db.transaction(tenant=organization_id) as tx:
        await hold_authority(tx, scope)
        is_open = await organizations.hold_open(tx, organization_id)
        # Whoever uses an idempotency key of the organisation, or begins a checkout, takes turns here.
        await code_entitlements.lock(tx, organization_id)
        now = ctx.clock.now()
        customer = await card_customers.find(tx, organization_id)
        repeated = await _find_repeated(tx, organization_id, attempt, now)
        if isinstance(repeated, bytes):
            return repeated
        if repeated is not None:
            return Begun(repeated, customer, None)
        require_open_organization(is_open=is_open)
        purchase = await _require_purchase(tx, organization_id, offer_id, now)
        return await _insert(ctx, tx, scope, purchase, attempt, customer, now)


async def _find_repeated(
    tx: Tx, organization_id: str, attempt: Attempt | None, now: datetime
) -> Checkout | bytes | None:
    """Return the response that the key has, or the checkout that is still without a page; None for a new request.

    Raises: ValidationFailed for a malformed key; IdempotencyConflict.
    """
    if attempt is None:
        return None
    receipts = await issuance_receipts.find(tx, organization_id, [attempt.key_digest])
    result = find_result(receipts, attempt, now)
    if result is None or result:
        return result
    found = await purchases.find_of_key(tx, organization_id, attempt.key_digest)
    return found if found is not None and found.status_at(now) == "pending" else None


async def _require_purchase(tx: Tx, organization_id: str, offer_id: str, now: datetime) -> Purchase:
    purchase = await purchases.find_purchase(tx, offer_id)
    if purchase is None:
        raise OfferNotFound
    if purchase.provider == "card" and await subscriptions.has_unending_card(tx, organization_id, purchase.product):
        raise SubscriptionActive
    pending = await purchases.count_pending(tx, organization_id, now=now)
    if pending.count >= PENDING_MAX and pending.first_expires_at is not None:
        wait_s = max(1, -(-(pending.first_expires_at - now) // _SECOND))
        raise RateLimited("Too many checkouts of this organisation are pending.", headers={"Retry-After": str(wait_s)})
    return purchase


async def _insert(
    ctx: Context,
    tx: Tx,
    scope: TenantScope,
    purchase: Purchase,
    attempt: Attempt | None,
    customer: str | None,
    now: datetime,
) -> Begun:
    checkout = begin_checkout(
        scope.organization_id,
        mint(ctx.entropy, CHECKOUT_PREFIX),
        purchase,
        key_digest=None if attempt is None else attempt.key_digest,
        request_digest=None if attempt is None else attempt.request_digest,
        now=now,
    )
    await checkouts.insert(tx, checkout)
    if checkout.key_digest is not None and checkout.request_digest is not None:
        # Reserves the key, so that nothing else is done under it while the provider is asked.
        reserved = Receipt(checkout.key_digest, None, "checkout", checkout.request_digest, b"", now)
        await issuance_receipts.insert_or_update(tx, scope.organization_id, [reserved])
    local_secret = None
    if checkout.provider == "local":
        local_secret = mint_secret(ctx.entropy, "")
        await references.insert_or_find(
            tx, "local_secret", local_secret, organization_id=scope.organization_id, subject_id=checkout.id
        )
    metadata = {"checkout_id": checkout.id, "offer_id": checkout.offer_id}
    await audit.record(tx, scope, ctx.entropy, action="billing.checkout_created", now=now, metadata=metadata)
    return Begun(checkout, customer, local_secret)


async def _finish(ctx: Context, checkout: Checkout, page: CheckoutPage | None) -> bytes:
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
    await purchases.update_page(tx, checkout, page, reread_at=now + FIRST_REREAD)
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
