"""Giving up a pending checkout, in three phases (docs/adr/0055).

1. Judge the caller and the checkout in one transaction. A checkout that has no page yet fails here. The request that is
   making it finds that, and closes the page.
2. With nothing locked, let the card provider close the page. The local provider closes none, so it is asked whether the
   payment has ended.
3. Store in one transaction that the checkout has expired, or what the provider says instead.

A process may die anywhere. After phase 2 the page may be closed while the checkout is pending; the same request, sent
again, finds it closed and goes on with phase 3.
"""

from dataclasses import replace
from datetime import datetime
from typing import Final

import structlog

from soundmark.core.context import RequestContext
from soundmark.core.domain.billing.checkout import Checkout
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.billing.checkouts.finishing import fail_without_page
from soundmark.core.features.billing.checkouts.service import get_checkout
from soundmark.core.problems import CheckoutNotCancellable, CheckoutNotFound, PaymentProviderUnavailable
from soundmark.core.providers.stripe.client import CardObjectMissing
from soundmark.core.steps import audit, card_reconciliation, local_reconciliation
from soundmark.core.steps.card_reconciliation import CardRead
from soundmark.core.steps.tenancy import hold_authority
from soundmark.core.store.billing import checkouts
from soundmark.core.store.tenancy import organizations
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.timestamps import format_timestamp

_MINUTE_S: Final = 60
_log: Final = structlog.get_logger()


async def cancel_checkout(ctx: RequestContext, scope: TenantScope, checkout_id: str) -> Checkout:
    """End a pending checkout that nobody can pay from now on, and return it as it is then.

    One that has ended, or that turns out to be paid, is returned as it is. Safe to repeat and concurrently.

    Raises: CheckoutNotFound; CheckoutNotCancellable while the payment is under way or the page of the local provider
        can still be paid; RateLimited for too many questions to the local provider; PaymentNotVerified;
        PaymentProviderUnavailable, whereupon nothing has changed.
    Source: contract, section 7, "Offers, checkouts, subscriptions".
    """
    checkout = await _begin(ctx, scope, checkout_id)
    if checkout.status_at(ctx.clock.now()) != "pending":
        return checkout
    assert checkout.provider_reference is not None, "phase 1 fails what has no page"
    if checkout.provider == "local":
        await _ask_local(ctx, checkout, checkout.provider_reference)
    elif await _is_closed(ctx, checkout, checkout.provider_reference):
        return await _end(ctx, scope, checkout)
    else:
        await _reread_card(ctx, checkout)
    found = await get_checkout(ctx, scope, checkout_id)
    if found.status_at(ctx.clock.now()) == "pending":
        raise CheckoutNotCancellable(_explain(found))
    return found


async def _begin(ctx: RequestContext, scope: TenantScope, checkout_id: str) -> Checkout:
    """Carry out phase 1."""
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        checkout = await checkouts.lock(tx, scope.organization_id, checkout_id)
        if checkout is None:
            raise CheckoutNotFound
        now = ctx.clock.now()
        if checkout.has_page or checkout.status_at(now) != "pending":
            return checkout
        await fail_without_page(tx, checkout)
        await _record(ctx, tx, scope, checkout, now=now)
    return replace(checkout, status="failed")


async def _is_closed(ctx: RequestContext, checkout: Checkout, session: str) -> bool:
    """Let the card provider close the page; return False if it was used before.

    Raises: PaymentProviderUnavailable.
    """
    try:
        return (await ctx.card.expire_session(session)).status == "expired"
    except CardObjectMissing:
        # The provider made this session, so the credential must be that of another account.
        _log.warning("card_object_missing", organization_id=checkout.organization_id, checkout_id=checkout.id)
        raise PaymentProviderUnavailable from None


async def _reread_card(ctx: RequestContext, checkout: Checkout) -> None:
    """Apply what the card provider says of a session that is complete.

    Raises: CheckoutNotFound if the organisation was deleted meanwhile; as `card_reconciliation.reconcile`.
    """
    place = (checkout.organization_id, checkout.id)
    async with ctx.db.transaction(tenant=checkout.organization_id) as tx:
        number = await checkouts.update_reads_begun(tx, *place)
        found = await checkouts.find(tx, *place)
    if found is None or number is None:
        raise CheckoutNotFound
    is_bound = found.subscription_reference is not None
    await card_reconciliation.reconcile(ctx, CardRead(found, number, None, is_bound=is_bound))


async def _ask_local(ctx: RequestContext, checkout: Checkout, payment_id: str) -> None:
    """Apply what the local provider says of the payment, unless it was asked a moment ago.

    The questions of an organisation count like those of a client, so that none uses up what all have together.

    Raises: RateLimited; as `local_reconciliation.reconcile`.
    """
    if checkout.is_unpaid_at(ctx.clock.now()):
        return
    of_organization = await ctx.local_notification_limit.hit(checkout.organization_id.encode())
    if not of_organization.is_allowed:
        raise RateLimited(headers={"retry-after": str(of_organization.reset_s)})
    async with ctx.db.transaction(tenant=checkout.organization_id) as tx:
        now = ctx.clock.now()
        if not await local_reconciliation.count_verification(ctx, tx, "public", now=now):
            raise RateLimited(headers={"retry-after": str(_MINUTE_S - now.second)})
    await local_reconciliation.reconcile(ctx, checkout, payment_id)


async def _end(ctx: RequestContext, scope: TenantScope, checkout: Checkout) -> Checkout:
    """Carry out phase 3 for a page that is closed.

    The caller's authority is not judged again: the page is closed, even if they may no longer close one.

    Raises: CheckoutNotFound if the organisation was deleted meanwhile.
    """
    async with ctx.db.transaction(tenant=checkout.organization_id) as tx:
        await organizations.hold_open(tx, checkout.organization_id)  # The audit entry refers to its row.
        found = await checkouts.lock(tx, checkout.organization_id, checkout.id)
        if found is None:
            raise CheckoutNotFound
        if found.status != "pending":
            return found  # Another request was faster.
        await checkouts.update_ended(tx, found, status="expired")
        await _record(ctx, tx, scope, found, now=ctx.clock.now())
    return replace(found, status="expired")


async def _record(ctx: RequestContext, tx: Tx, scope: TenantScope, checkout: Checkout, *, now: datetime) -> None:
    metadata = {"checkout_id": checkout.id, "offer_id": checkout.offer_id}
    await audit.record(tx, scope, ctx.entropy, "billing.checkout_cancelled", now=now, **metadata)


def _explain(checkout: Checkout) -> str:
    """Return why a checkout stays pending, and until when."""
    reason = (
        "Only the provider closes this payment page, and it can still be paid"
        if checkout.provider == "local"
        else "A payment on its page is under way"
    )
    return f"{reason}. The checkout ends by itself at {format_timestamp(checkout.expires_at)} at the latest."
