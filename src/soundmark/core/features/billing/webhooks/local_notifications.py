"""Recording a notification of the local provider, and asking it: phase 1 of `local_reconciliation`."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, TypeAlias

import structlog

from soundmark.core.context import RequestContext
from soundmark.core.domain.billing.checkout import FIRST_REREAD, Checkout
from soundmark.core.problems import CheckoutNotFound
from soundmark.core.steps.local_reconciliation import (
    count_verification,
    minute_of,
    note_processed,
    reconcile,
)
from soundmark.core.store.billing import checkouts, local_verifications, receipts, references
from soundmark.core.store.tenancy import organizations
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.kit.postgres.transaction import Tx

LocalOutcome: TypeAlias = Literal["processed", "pending", "ignored", "repeated"]

_TYPE: Final = "payment"  # The provider's notifications have no type of their own.
_MINUTE_S: Final = 60
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Notification:
    """A notification of a payment of ours, from a client of which only the digest of its address is known."""

    payment_id: str = field(repr=False)
    organization_id: str
    checkout_id: str
    client: bytes
    body_digest: bytes


async def receive_notification(
    ctx: RequestContext, payment_ids: Sequence[str], *, secret: str | None, client: bytes, body_digest: bytes
) -> LocalOutcome:
    """Ask the provider about a payment that somebody says was made; `repeated` if that was done before.

    `payment_ids` are the ids that the notification may mean, `secret` is the one in its path, `client` the digest of
    the address that it came from. Nobody is asked about a payment that was unpaid less than ten seconds ago: a job does
    so once they are over. Safe to repeat and concurrently.

    Raises: CheckoutNotFound, before the provider is asked; RateLimited; as `reconcile`.
    Source: contract, section 7.
    """
    payment_id, organization_id, checkout_id = await _find_checkout(ctx, payment_ids, secret)
    notification = _Notification(payment_id, organization_id, checkout_id, client, body_digest)
    questions = ctx.local_questions
    while (under_way := questions.get(payment_id)) is not None:
        try:
            outcome: LocalOutcome = await asyncio.shield(under_way)
        except RateLimited:
            continue  # The limit may be that of the other client.
        if outcome == "pending":
            # The provider may have answered before this payment was made.
            async with ctx.db.transaction(tenant=organization_id) as tx:
                await receipts.update_due(tx, "local", payment_id, now=ctx.clock.now())
        return outcome
    # A task of its own: others may wait for it, whatever becomes of this request.
    asking = questions[payment_id] = asyncio.create_task(_answer(ctx, notification))
    asking.add_done_callback(lambda _: questions.pop(payment_id))
    return await asyncio.shield(asking)


async def _find_checkout(ctx: RequestContext, payment_ids: Sequence[str], secret: str | None) -> tuple[str, str, str]:
    """Return the payment that is ours, and the organisation and id of its checkout.

    An unknown payment, an unknown secret and one of another checkout cost the same two statements.

    Raises: CheckoutNotFound.
    """
    async with ctx.db.transaction() as tx, tx.pipeline() as send:
        finding_payment = send(references.find_local_payment(tx, payment_ids))
        finding_secret = send(references.find(tx, "local_secret", secret or ""))
    owner, of_secret = finding_payment.result(), finding_secret.result()
    if owner is None:
        raise CheckoutNotFound
    place = (owner.organization_id, owner.checkout_id)
    if secret is not None and (of_secret is None or (of_secret.organization_id, of_secret.subject_id) != place):
        raise CheckoutNotFound
    return payment_ids[owner.place - 1], *place


async def _answer(ctx: RequestContext, notification: _Notification) -> LocalOutcome:
    """Record the notification, and ask the provider if that is due and within the limits.

    Raises: CheckoutNotFound if the organisation was deleted meanwhile; RateLimited; as `reconcile`.
    """
    async with ctx.db.transaction(tenant=notification.organization_id) as tx:
        checkout = await _record(ctx, tx, notification)
        if checkout is None:
            return "repeated"
        now = ctx.clock.now()
        if checkout.is_unpaid_at(now):
            await receipts.update_due(tx, "local", notification.payment_id, now=now)
            return "pending"
        wait_s = await _count(ctx, tx, notification.client, now)
    if wait_s is not None:
        # The receipt stays, so a job asks if nobody notifies us again.
        raise RateLimited(headers={"retry-after": str(wait_s)})
    return await reconcile(ctx, checkout, notification.payment_id)


async def _record(ctx: RequestContext, tx: Tx, notification: _Notification) -> Checkout | None:
    """Record the notification; return its checkout, None if the payment was counted or judged before.

    Raises: CheckoutNotFound if the organisation was deleted meanwhile.
    """
    now = ctx.clock.now()
    organization_id, payment_id = notification.organization_id, notification.payment_id
    async with tx.pipeline() as send:
        # Held first, so that the organisation of a new receipt is not deleted meanwhile.
        send(organizations.hold_open(tx, organization_id))
        finding = send(checkouts.find(tx, organization_id, notification.checkout_id))
        send(
            receipts.insert_if_new(
                tx,
                provider="local",
                event_id=payment_id,
                event_type=_TYPE,
                body_digest=notification.body_digest,
                organization_id=organization_id,
                checkout_id=notification.checkout_id,
                reread_at=now + FIRST_REREAD,
                now=now,
            )
        )
        receiving = send(receipts.find(tx, "local", payment_id))
    checkout, receipt = finding.result(), receiving.result()
    if checkout is None or receipt is None:
        raise CheckoutNotFound
    if receipt.status == "processed":
        return None
    if checkout.status == "completed":
        await note_processed(tx, checkout, payment_id, now=now)  # A job had asked before.
        return None
    return checkout


async def _count(ctx: RequestContext, tx: Tx, client: bytes, now: datetime) -> int | None:
    """Count one question of a client; return how many seconds it has to wait if a limit is reached, else None.

    A question that one limit refuses is not counted in the other one.
    """
    if not await count_verification(ctx, tx, "public", now=now):
        return _MINUTE_S - now.second
    of_address = await ctx.local_notification_limit.hit(client)
    if of_address.is_allowed:
        return None
    await local_verifications.update_uncounted(tx, "public", minute=minute_of(now))
    if of_address.is_first_refused:
        _log.warning("local_notifications_limited", address=client.hex(), for_s=of_address.reset_s)
    return of_address.reset_s
