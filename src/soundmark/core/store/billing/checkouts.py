"""The table `checkouts`."""

from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.billing.checkout import Checkout
from soundmark.kit.postgres.transaction import Tx

_SELECT: Final[LiteralString] = """
    SELECT organization_id, id, offer_id, plan_id, product, provider, status, price_reference, amount_minor, currency,
           entitlement_months, key_digest, request_digest, attempts, provider_reference, subscription_reference,
           reads_begun, read_applied, rereads, reread_at, created_at, expires_at, completed_at, unpaid_at
      FROM checkouts
"""


async def insert(tx: Tx, checkout: Checkout) -> None:
    """Insert a checkout that was just made, before its provider is asked for a page."""
    await tx.run(
        """
        INSERT INTO checkouts
               (organization_id, id, offer_id, plan_id, product, provider, status, price_reference, amount_minor,
                currency, entitlement_months, key_digest, request_digest, attempts, created_at, expires_at)
        VALUES (%(organization_id)s, %(id)s, %(offer_id)s, %(plan_id)s, %(product)s, %(provider)s, 'pending',
                %(price_reference)s, %(amount_minor)s, %(currency)s, %(entitlement_months)s, %(key_digest)s,
                %(request_digest)s, 1, %(created_at)s, %(expires_at)s)
        """,
        {
            "organization_id": checkout.organization_id,
            "id": checkout.id,
            "offer_id": checkout.offer_id,
            "plan_id": checkout.plan_id,
            "product": checkout.product,
            "provider": checkout.provider,
            "price_reference": checkout.price_reference,
            "amount_minor": checkout.amount_minor,
            "currency": checkout.currency,
            "entitlement_months": checkout.entitlement_months,
            "key_digest": checkout.key_digest,
            "request_digest": checkout.request_digest,
            "created_at": checkout.created_at,
            "expires_at": checkout.expires_at,
        },
    )


async def find(tx: Tx, organization_id: str, checkout_id: str) -> Checkout | None:
    """Return a checkout of the organisation."""
    return await tx.one_or_none(
        Checkout,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(checkout_id)s",
        {"organization_id": organization_id, "checkout_id": checkout_id},
    )


async def lock(tx: Tx, organization_id: str, checkout_id: str) -> Checkout | None:
    """Return a checkout of the organisation, and keep it from changing until the transaction ends.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        Checkout,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(checkout_id)s FOR NO KEY UPDATE",
        {"organization_id": organization_id, "checkout_id": checkout_id},
    )


async def update_completed(tx: Tx, checkout: Checkout, *, now: datetime) -> None:
    """Complete a locked checkout, whatever its status was: money that was taken counts."""
    await tx.run(
        """
        UPDATE checkouts
           SET status = 'completed',
               completed_at = coalesce(completed_at, %(now)s),
               reread_at = NULL
         WHERE organization_id = %(organization_id)s
           AND id = %(checkout_id)s
        """,
        {"organization_id": checkout.organization_id, "checkout_id": checkout.id, "now": now},
    )


async def update_reads_begun(tx: Tx, organization_id: str, checkout_id: str) -> int | None:
    """Return a number for a read of the provider's objects that begins after this transaction; None without a checkout.

    What the read finds is applied only if no read with a higher number was: of two that overlap, the later one counts.
    """
    number: int | None = await tx.value(
        """
        UPDATE checkouts
           SET reads_begun = reads_begun + 1
         WHERE organization_id = %(organization_id)s
           AND id = %(checkout_id)s
        RETURNING reads_begun
        """,
        {"organization_id": organization_id, "checkout_id": checkout_id},
    )
    return number


async def update_read_applied(tx: Tx, checkout: Checkout, number: int) -> None:
    """Note that the result of the read with this number is applied to a locked checkout."""
    await tx.run(
        """
        UPDATE checkouts
           SET read_applied = %(number)s
         WHERE organization_id = %(organization_id)s
           AND id = %(checkout_id)s
        """,
        {"organization_id": checkout.organization_id, "checkout_id": checkout.id, "number": number},
    )


async def list_pending_ids(tx: Tx, organization_id: str, *, now: datetime, limit: int) -> list[str]:
    """Return the ids of up to `limit` checkouts of the organisation that are pending at `now`, oldest first."""
    ids: list[str] = await tx.value(
        """
        SELECT coalesce(array_agg(pending.id), '{}')
          FROM (SELECT id
                  FROM checkouts
                 WHERE organization_id = %(organization_id)s
                   AND status = 'pending'
                   AND expires_at > %(now)s
                 ORDER BY created_at, id
                 LIMIT %(limit)s) AS pending
        """,
        {"organization_id": organization_id, "now": now, "limit": limit},
    )
    return ids
