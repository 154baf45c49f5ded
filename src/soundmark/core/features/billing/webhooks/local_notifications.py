"""Recording a notification of the local provider, and asking it: phase 1 of `local_reconciliation`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, TypeAlias

from soundmark.core.context import Context
from soundmark.core.domain.billing.checkout import FIRST_REREAD, Checkout
from soundmark.core.features.billing.webhooks.local_reconciliation import (
    count_verification,
    note_processed,
    reconcile,
)
from soundmark.core.problems import CheckoutNotFound
from soundmark.core.store.billing import checkouts, local_payments, receipts, references
from soundmark.core.store.tenancy import organizations
from soundmark.kit.http.problems import RateLimited
from soundmark.kit.postgres.transaction import Tx

LocalOutcome: TypeAlias = Literal["processed", "pending", "ignored", "repeated"]

_TYPE: Final = "payment"  # The provider's notifications have no type of their own.
_MINUTE_S: Final = 60


async def receive_notification(
    ctx: Context, payment_ids: Sequence[str], *, secret: str | None, body_digest: bytes
) -> LocalOutcome:
    """Ask the provider about a payment that somebody says was made; `repeated` if that was done before.

    `payment_ids` are the ids that the notification may mean, `secret` is the one in its path. Safe to repeat and
    concurrently.

    Raises: CheckoutNotFound, before the provider is asked; RateLimited; as `reconcile`.
    Source: contract, section 7.
    """
    payment_id, organization_id, checkout_id = await _find_checkout(ctx, payment_ids, secret)
    async with ctx.db.transaction(tenant=organization_id) as tx:
        checkout = await _record(ctx, tx, payment_id, organization_id, checkout_id, body_digest)
        if checkout is None:
            return "repeated"
        now = ctx.clock.now()
        is_allowed = await count_verification(ctx, tx, now=now)
    if not is_allowed:
        # The receipt stays, so a job asks if nobody notifies us again.
        raise RateLimited(headers={"retry-after": str(_seconds_to_next_minute(now))})
    return await reconcile(ctx, checkout, payment_id)


async def _find_checkout(ctx: Context, payment_ids: Sequence[str], secret: str | None) -> tuple[str, str, str]:
    """Return the payment that is ours, and the organisation and id of its checkout.

    An unknown payment, an unknown secret and one of another checkout cost the same two statements.

    Raises: CheckoutNotFound.
    """
    async with ctx.db.transaction() as tx, tx.pipeline() as send:
        finding_payment = send(local_payments.find_owner(tx, payment_ids))
        finding_secret = send(references.find(tx, "local_secret", secret or ""))
    owner, of_secret = finding_payment.result(), finding_secret.result()
    if owner is None:
        raise CheckoutNotFound
    place = (owner.organization_id, owner.checkout_id)
    if secret is not None and (of_secret is None or (of_secret.organization_id, of_secret.subject_id) != place):
        raise CheckoutNotFound
    return payment_ids[owner.place - 1], *place


async def _record(
    ctx: Context, tx: Tx, payment_id: str, organization_id: str, checkout_id: str, body_digest: bytes
) -> Checkout | None:
    """Record the notification; return its checkout, None if the payment was counted or judged before.

    Raises: CheckoutNotFound if the organisation was deleted meanwhile.
    """
    now = ctx.clock.now()
    async with tx.pipeline() as send:
        # Held first, so that the organisation of a new receipt is not deleted meanwhile.
        send(organizations.hold_open(tx, organization_id))
        finding = send(checkouts.find(tx, organization_id, checkout_id))
        send(
            receipts.insert_if_new(
                tx,
                provider="local",
                event_id=payment_id,
                event_type=_TYPE,
                body_digest=body_digest,
                organization_id=organization_id,
                checkout_id=checkout_id,
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


def _seconds_to_next_minute(now: datetime) -> int:
    return _MINUTE_S - now.second
