"""The statements that make checkouts, and that end those that nobody paid."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.billing.checkout import Checkout, CheckoutPage, Purchase
from soundmark.kit.postgres.transaction import Tx

_SELECT: Final[LiteralString] = """
    SELECT organization_id, id, offer_id, plan_id, product, provider, status, price_reference, amount_minor, currency,
           entitlement_months, key_digest, request_digest, attempts, provider_reference, subscription_reference,
           reads_begun, read_applied, rereads, reread_at, created_at, expires_at, completed_at, unpaid_at
      FROM checkouts
"""


@dataclass(frozen=True, slots=True)
class PendingCheckouts:
    """The number of an organisation's pending checkouts, and when the first of them expires, None without any."""

    count: int
    first_expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class CheckoutPlace:
    """Where a checkout is."""

    organization_id: str
    id: str


async def find_purchase(tx: Tx, offer_id: str) -> Purchase | None:
    """Return what an offer sells; None unless it is an active offer of an active plan of an enabled provider.

    The card provider must know its price.
    """
    return await tx.one_or_none(
        Purchase,
        """
        SELECT o.id AS offer_id, o.plan_id, p.product, o.provider, o.price_reference,
               CASE o.provider WHEN 'local' THEN o.amount_minor END AS amount_minor,
               CASE o.provider WHEN 'local' THEN o.currency END AS currency,
               o.entitlement_months
          FROM offers o
          JOIN plans p ON p.id = o.plan_id
          JOIN payment_providers v ON v.name = o.provider
         WHERE o.id = %(offer_id)s
           AND o.active
           AND p.active
           AND v.enabled
           AND (o.provider <> 'card' OR o.price_status = 'known')
        """,
        {"offer_id": offer_id},
    )


async def count_pending(tx: Tx, organization_id: str, *, now: datetime) -> PendingCheckouts:
    """Count the organisation's pending checkouts. Exact only while nobody else can begin one."""
    found = await tx.one_or_none(
        PendingCheckouts,
        """
        SELECT count(*) AS count, min(expires_at) AS first_expires_at
          FROM checkouts
         WHERE organization_id = %(organization_id)s
           AND status = 'pending'
           AND expires_at > %(now)s
        """,
        {"organization_id": organization_id, "now": now},
    )
    assert found is not None, "an aggregate has one row"
    return found


async def find_of_key(tx: Tx, organization_id: str, key_digest: bytes) -> Checkout | None:
    """Return the newest checkout that was requested with an idempotency key of the organisation."""
    return await tx.one_or_none(
        Checkout,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND key_digest = %(key_digest)s
         ORDER BY created_at DESC
         LIMIT 1
        """,
        {"organization_id": organization_id, "key_digest": key_digest},
    )


async def update_attempts(tx: Tx, checkout: Checkout, *, after: int) -> int:
    """Count another attempt to get a page, unless one after the attempt `after` was counted; return the number."""
    attempts: int | None = await tx.value(
        """
        UPDATE checkouts
           SET attempts = greatest(attempts, %(after)s + 1)
         WHERE organization_id = %(organization_id)s
           AND id = %(checkout_id)s
        RETURNING attempts
        """,
        {"organization_id": checkout.organization_id, "checkout_id": checkout.id, "after": after},
    )
    return attempts or after + 1


async def update_page(tx: Tx, checkout: Checkout, page: CheckoutPage, *, reread_at: datetime) -> None:
    """Store the provider's reference of a locked checkout, and when the provider is first asked about it."""
    await tx.run(
        """
        UPDATE checkouts
           SET provider_reference = %(reference)s,
               reread_at = CASE status WHEN 'pending' THEN %(reread_at)s::timestamptz END
         WHERE organization_id = %(organization_id)s
           AND id = %(checkout_id)s
        """,
        {
            "organization_id": checkout.organization_id,
            "checkout_id": checkout.id,
            "reference": page.reference,
            "reread_at": reread_at,
        },
    )


async def update_without_page(tx: Tx, checkout: Checkout) -> None:
    """Note that a locked checkout failed because its provider made no page."""
    await tx.run(
        """
        UPDATE checkouts
           SET status = 'failed',
               reread_at = NULL
         WHERE organization_id = %(organization_id)s
           AND id = %(checkout_id)s
        """,
        {"organization_id": checkout.organization_id, "checkout_id": checkout.id},
    )


async def update_expired(tx: Tx, organization_id: str, checkout_id: str, *, now: datetime) -> bool:
    """Expire a pending checkout that has passed its life; return whether it was one.

    It is still read again where it was to be: money that was taken counts.
    """
    updated = await tx.run(
        """
        UPDATE checkouts
           SET status = 'expired'
         WHERE organization_id = %(organization_id)s
           AND id = %(checkout_id)s
           AND status = 'pending'
           AND expires_at <= %(now)s
        """,
        {"organization_id": organization_id, "checkout_id": checkout_id, "now": now},
    )
    return updated == 1


async def list_expired(tx: Tx, *, now: datetime, limit: int) -> list[CheckoutPlace]:
    """List pending checkouts of every organisation that have passed their life, the oldest first."""
    return await tx.all(
        CheckoutPlace,
        """
        SELECT organization_id, id
          FROM checkouts
         WHERE status = 'pending'
           AND expires_at <= %(now)s
         ORDER BY expires_at
         LIMIT %(limit)s
        """,
        {"now": now, "limit": limit},
    )


async def list_without_page(tx: Tx, *, expiring_until: datetime, limit: int) -> list[CheckoutPlace]:
    """List pending checkouts of every organisation that have no page and expire until then, the oldest first."""
    return await tx.all(
        CheckoutPlace,
        """
        SELECT organization_id, id
          FROM checkouts
         WHERE status = 'pending'
           AND provider_reference IS NULL
           AND expires_at <= %(expiring_until)s
         ORDER BY expires_at
         LIMIT %(limit)s
        """,
        {"expiring_until": expiring_until, "limit": limit},
    )
