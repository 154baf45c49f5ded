"""The statements on `checkouts` for asking the providers again."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from soundmark.core.domain.billing.catalog import ProviderName
from soundmark.core.domain.billing.checkout import ASK_PAUSE, Checkout
from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class DueCheckout:
    """A checkout whose provider it is time to ask."""

    organization_id: str
    id: str
    rereads: int
    reread_at: datetime
    created_at: datetime


async def list_due(tx: Tx, provider: ProviderName, *, now: datetime, limit: int) -> list[DueCheckout]:
    """Return the checkouts of every organisation whose provider it is time to ask, the longest due first.

    Those that the local provider has just called unpaid are left out.
    """
    return await tx.all(
        DueCheckout,
        """
        SELECT organization_id, id, rereads, reread_at, created_at
          FROM checkouts
         WHERE reread_at <= %(now)s
           AND provider = %(provider)s
           AND (unpaid_at IS NULL OR unpaid_at <= %(asked_before)s)
         ORDER BY reread_at
         LIMIT %(limit)s
        """,
        {"provider": provider, "now": now, "asked_before": now - ASK_PAUSE, "limit": limit},
    )


async def update_reread(
    tx: Tx, organization_id: str, checkout_id: str, *, reread_at: datetime | None, now: datetime
) -> bool:
    """Put off the next reread of a checkout that is due; return False if another worker was faster."""
    return bool(
        await tx.run(
            """
            UPDATE checkouts
               SET rereads = rereads + 1,
                   reread_at = %(reread_at)s
             WHERE organization_id = %(organization_id)s
               AND id = %(checkout_id)s
               AND reread_at <= %(now)s
            """,
            {"organization_id": organization_id, "checkout_id": checkout_id, "reread_at": reread_at, "now": now},
        )
    )


async def update_unpaid(tx: Tx, checkout: Checkout, *, asked_at: datetime) -> None:
    """Note that the local provider, asked at that time, called the payment of a checkout unpaid."""
    await tx.run(
        """
        UPDATE checkouts
           SET unpaid_at = greatest(unpaid_at, %(asked_at)s)
         WHERE organization_id = %(organization_id)s
           AND id = %(checkout_id)s
        """,
        {"organization_id": checkout.organization_id, "checkout_id": checkout.id, "asked_at": asked_at},
    )


async def update_subscription_reference(tx: Tx, checkout: Checkout, reference: str) -> None:
    """Note the card subscription that a locked checkout led to."""
    await tx.run(
        """
        UPDATE checkouts
           SET subscription_reference = %(reference)s
         WHERE organization_id = %(organization_id)s
           AND id = %(checkout_id)s
        """,
        {"organization_id": checkout.organization_id, "checkout_id": checkout.id, "reference": reference},
    )


async def update_ended(tx: Tx, checkout: Checkout, *, status: Literal["failed", "expired"]) -> None:
    """End a locked checkout that is pending without a payment, and ask about it no more."""
    await tx.run(
        """
        UPDATE checkouts
           SET status = CASE status WHEN 'pending' THEN %(status)s ELSE status END,
               reread_at = NULL
         WHERE organization_id = %(organization_id)s
           AND id = %(checkout_id)s
        """,
        {"organization_id": checkout.organization_id, "checkout_id": checkout.id, "status": status},
    )
