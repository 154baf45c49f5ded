"""Phase 2 of making a checkout: asking its provider for the page on which it is paid."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.billing.checkout import Checkout, CheckoutPage
from soundmark.core.domain.tenancy.mailbox import read_mailbox
from soundmark.core.problems import PaymentProviderUnavailable
from soundmark.core.store.billing import checkouts

_ATTEMPTS_MAX: Final = 2  # Of one request: a failure that the provider stored under a key is left behind once.
_CALL_MAX: Final = timedelta(seconds=15)  # More than the local provider's client waits.
_PAUSE_S: Final = 0.25


async def open_page(
    ctx: Context, checkout: Checkout, *, email: str, customer: str | None, local_secret: str | None
) -> CheckoutPage:
    """Ask the provider for a page. Nothing is locked meanwhile.

    `email` is the caller's address, which the card provider's page shows if it does not know the customer yet.

    Raises: PaymentProviderUnavailable.
    """
    return_url = f"{ctx.console_url}/billing/checkouts/{checkout.id}"
    if checkout.provider == "card":
        return await _open_card(ctx, checkout, return_url, email, customer)
    if local_secret is None:
        await _wait_for_page(ctx, checkout)
        raise PaymentProviderUnavailable
    webhook_url = f"{ctx.base_url}/v1/billing/webhooks/local/{local_secret}"
    made = await ctx.local.generate(checkout, success_url=return_url, fail_url=return_url, webhook_url=webhook_url)
    return CheckoutPage(made.payment_id, made.link)


async def _open_card(
    ctx: Context, checkout: Checkout, return_url: str, email: str, customer: str | None
) -> CheckoutPage:
    async with contextlib.aclosing(_idempotency_keys(ctx, checkout)) as keys:
        session = await ctx.card.create_session(
            checkout,
            success_url=return_url,
            cancel_url=return_url,
            customer=customer,
            customer_email=email if read_mailbox(email) is not None else None,
            idempotency_keys=keys,
        )
    assert session.url is not None, "the client has checked it"
    return CheckoutPage(session.reference, session.url)


async def _idempotency_keys(ctx: Context, checkout: Checkout) -> AsyncGenerator[str, None]:
    """Yield the provider's idempotency key of the current attempt, then those of later ones.

    A later attempt is counted before its key is used: a process that resumes goes on with the same key, which leads to
    the same page.
    """
    attempts = checkout.attempts
    yield f"{checkout.id}-{attempts}"
    for _ in range(_ATTEMPTS_MAX - 1):
        async with ctx.db.transaction(tenant=checkout.organization_id) as tx:
            attempts = await checkouts.update_attempts(tx, checkout, after=attempts)
        yield f"{checkout.id}-{attempts}"


async def _wait_for_page(ctx: Context, checkout: Checkout) -> None:
    """Wait until the first request for a checkout has its page, has failed, or must have died."""
    pauses = (checkout.created_at + _CALL_MAX - ctx.clock.now()) // timedelta(seconds=_PAUSE_S)
    for _ in range(max(0, min(pauses, int(_CALL_MAX.total_seconds() / _PAUSE_S)))):
        async with ctx.db.snapshot(tenant=checkout.organization_id) as tx:
            found = await checkouts.find(tx, checkout.organization_id, checkout.id)
        if found is None or found.has_page or found.status != "pending":
            return
        await asyncio.sleep(_PAUSE_S)
