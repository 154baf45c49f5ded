"""Making a checkout, in three phases (docs/adr/0021).

1. Judge the caller, the idempotency key and the offer, and insert the checkout as `pending`, in one transaction.
2. Ask the provider for a page, with nothing locked.
3. Store the page and the response under the idempotency key, or that the checkout failed, in one transaction.

A process may die anywhere. Then the checkout is pending without a page, until the same request is sent again, which
resumes at phase 2, or a job fails it.
"""

from soundmark.core.context import Context
from soundmark.core.domain.billing.checkout import PENDING_MAX, Checkout
from soundmark.core.domain.codes.receipt import KeyedRequest
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.billing.checkouts.beginning import begin
from soundmark.core.features.billing.checkouts.finishing import finish
from soundmark.core.features.billing.checkouts.pages import open_page
from soundmark.core.problems import CheckoutNotFound, PaymentProviderUnavailable
from soundmark.core.store.billing import checkouts


async def create_checkout(ctx: Context, scope: TenantScope, offer_id: str, keyed: KeyedRequest | None) -> bytes:
    """Make a checkout and return the response, which has the address of the provider's page.

    A request that repeats one of the last 24 hours with its idempotency key gets the same response. If that request
    has not ended, or its process died, it is resumed: the card provider answers with the same page, while the local
    provider, which would make a second one, is not called again.

    Raises: OfferNotFound; SubscriptionActive; RateLimited for too many pending checkouts; ValidationFailed for a
        malformed key; IdempotencyConflict; ResourceDeletionInProgress; PaymentProviderUnavailable, which fails the
        checkout and frees the key.
    Source: contract, section 7, "Offers, checkouts, subscriptions".
    """
    begun = await begin(ctx, scope, offer_id, keyed)
    if isinstance(begun, bytes):
        return begun
    try:
        page = await open_page(
            ctx, begun.checkout, email=scope.user.email, customer=begun.customer, local_secret=begun.local_secret
        )
    except PaymentProviderUnavailable:
        page = None
    return await finish(ctx, begun.checkout, page)


async def get_checkout(ctx: Context, scope: TenantScope, checkout_id: str) -> Checkout:
    """Return a checkout of the organisation.

    Raises: CheckoutNotFound.
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        found = await checkouts.find(tx, scope.organization_id, checkout_id)
    if found is None:
        raise CheckoutNotFound
    return found


async def list_pending(ctx: Context, scope: TenantScope) -> list[Checkout]:
    """Return the organisation's pending checkouts, oldest first."""
    now = ctx.clock.now()
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        return await checkouts.list_pending(tx, scope.organization_id, now=now, limit=PENDING_MAX)
