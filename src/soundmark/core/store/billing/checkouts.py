"""The table `checkouts`."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final, Literal, LiteralString

from soundmark.core.domain.billing.catalog import ProviderName
from soundmark.core.domain.billing.checkout import ASK_PAUSE, Checkout, CheckoutPage
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


@dataclass(frozen=True, slots=True)
class DueCheckout:
    """A checkout whose provider it is time to ask."""

    organization_id: str
    id: str
    rereads: int
    reread_at: datetime
    created_at: datetime


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
        asdict(checkout),
    )


async def find(tx: Tx, organization_id: str, checkout_id: str) -> Checkout | None:
    """Return a checkout of the organisation."""
    return await tx.one_or_none(
        Checkout,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(checkout_id)s",
        {"organization_id": organization_id, "checkout_id": checkout_id},
    )


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


async def lock(tx: Tx, organization_id: str, checkout_id: str) -> Checkout | None:
    """Return a checkout of the organisation, and keep it from changing until the transaction ends.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        Checkout,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(checkout_id)s FOR NO KEY UPDATE",
        {"organization_id": organization_id, "checkout_id": checkout_id},
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


async def list_pending(tx: Tx, organization_id: str, *, now: datetime, limit: int) -> list[Checkout]:
    """Return up to `limit` checkouts of the organisation that are pending at `now`, oldest first."""
    return await tx.all(
        Checkout,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND status = 'pending'
           AND expires_at > %(now)s
         ORDER BY created_at, id
         LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "now": now, "limit": limit},
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
