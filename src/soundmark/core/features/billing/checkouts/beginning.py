"""Phase 1 of making a checkout: judging the request, and inserting the checkout."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.billing.checkout import CHECKOUT_PREFIX, PENDING_MAX, Checkout, Purchase, begin_checkout
from soundmark.core.domain.codes.receipt import KeyedRequest, Receipt
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import OfferNotFound, SubscriptionActive
from soundmark.core.steps import audit
from soundmark.core.steps.idempotency import find_result
from soundmark.core.steps.tenancy import hold_authority, require_active_organization
from soundmark.core.store.billing import card_customers, checkouts, offers, references, subscriptions
from soundmark.core.store.codes import code_entitlements, issuance_receipts
from soundmark.core.store.tenancy import organizations
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint, mint_secret

_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class BegunCheckout:
    """A checkout after phase 1.

    `customer` is the card provider's reference of the organisation. `local_secret` is part of the address at which the
    local provider notifies Core; None for a checkout that an earlier request began.
    """

    checkout: Checkout
    customer: str | None = field(repr=False)
    local_secret: str | None = field(repr=False)


async def begin(ctx: Context, scope: TenantScope, offer_id: str, keyed: KeyedRequest | None) -> BegunCheckout | bytes:
    """Carry out phase 1; return the stored response of a repeated request."""
    organization_id = scope.organization_id
    async with ctx.db.transaction(tenant=organization_id) as tx:
        await hold_authority(tx, scope)
        standing = await organizations.hold_standing(tx, organization_id)
        # Whoever uses an idempotency key of the organisation, or begins a checkout, takes turns here.
        await code_entitlements.lock(tx, organization_id)
        now = ctx.clock.now()
        customer = await card_customers.find(tx, organization_id)
        repeated = await _find_repeated(tx, organization_id, keyed, now)
        if isinstance(repeated, bytes):
            return repeated
        if repeated is not None:
            return BegunCheckout(repeated, customer, None)
        require_active_organization(standing)
        purchase = await _require_purchase(tx, organization_id, offer_id, now)
        return await _insert(ctx, tx, scope, purchase, keyed=keyed, customer=customer, now=now)


async def _find_repeated(
    tx: Tx, organization_id: str, keyed: KeyedRequest | None, now: datetime
) -> Checkout | bytes | None:
    """Return the response that the key has, or the checkout that is still without a page; None for a new request.

    Raises: ValidationFailed for a malformed key; IdempotencyConflict.
    """
    if keyed is None:
        return None
    receipts = await issuance_receipts.find(tx, organization_id, [keyed.key_digest])
    result = find_result(receipts, keyed, now)
    if result is None or result:
        return result
    found = await checkouts.find_of_key(tx, organization_id, keyed.key_digest)
    return found if found is not None and found.status_at(now) == "pending" else None


async def _require_purchase(tx: Tx, organization_id: str, offer_id: str, now: datetime) -> Purchase:
    purchase = await offers.find_purchase(tx, offer_id)
    if purchase is None:
        raise OfferNotFound
    if purchase.provider == "card" and await subscriptions.has_unending_card(tx, organization_id, purchase.product):
        raise SubscriptionActive
    pending = await checkouts.count_pending(tx, organization_id, now=now)
    if pending.count >= PENDING_MAX and pending.first_expires_at is not None:
        wait_s = max(1, -(-(pending.first_expires_at - now) // _SECOND))
        raise RateLimited(
            "This organisation has too many pending checkouts. Try again when one has been paid or has expired.",
            headers={"Retry-After": str(wait_s)},
        )
    return purchase


async def _insert(
    ctx: Context,
    tx: Tx,
    scope: TenantScope,
    purchase: Purchase,
    *,
    keyed: KeyedRequest | None,
    customer: str | None,
    now: datetime,
) -> BegunCheckout:
    checkout = begin_checkout(
        scope.organization_id,
        mint(ctx.entropy, CHECKOUT_PREFIX),
        purchase,
        key_digest=None if keyed is None else keyed.key_digest,
        request_digest=None if keyed is None else keyed.request_digest,
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
    await audit.record(tx, scope, ctx.entropy, "billing.checkout_created", now=now, **metadata)
    return BegunCheckout(checkout, customer, local_secret)
