"""The table `payment_receipts`: the ledger of payment events. It holds nothing of a payer and no provider's object."""

from datetime import datetime

from soundmark.core.domain.billing.catalog import ProviderName
from soundmark.core.domain.billing.checkout import ASK_PAUSE
from soundmark.core.domain.billing.payment_receipt import PaymentReceipt, ReceiptStatus
from soundmark.kit.postgres.transaction import Tx


async def insert_if_new(
    tx: Tx,
    *,
    provider: ProviderName,
    event_id: str,
    event_type: str,
    body_digest: bytes,
    organization_id: str | None,
    checkout_id: str | None,
    reread_at: datetime | None,
    now: datetime,
) -> None:
    """Insert the pending receipt of an event, unless it has one. Of two deliveries, the second waits for the first.

    Organisation and checkout are stored if the organisation, which the caller holds, has this checkout.
    """
    await tx.run(
        """
        INSERT INTO payment_receipts
               (provider, event_id, event_type, body_digest, organization_id, checkout_id, status, reread_at,
                received_at)
        SELECT %(provider)s, %(event_id)s, %(event_type)s, %(body_digest)s, c.organization_id, c.id, 'pending',
               %(reread_at)s, %(now)s
          FROM (VALUES (1)) AS event
          LEFT JOIN checkouts AS c
            ON c.organization_id = %(organization_id)s
           AND c.id = %(checkout_id)s
            ON CONFLICT ON CONSTRAINT payment_receipts_pkey DO NOTHING
        """,
        {
            "provider": provider,
            "event_id": event_id,
            "event_type": event_type,
            "body_digest": body_digest,
            "organization_id": organization_id,
            "checkout_id": checkout_id,
            "reread_at": reread_at,
            "now": now,
        },
    )


async def find(tx: Tx, provider: ProviderName, event_id: str) -> PaymentReceipt | None:
    """Return the receipt of an event."""
    return await tx.one_or_none(
        PaymentReceipt,
        """
        SELECT provider, event_id, event_type, organization_id, checkout_id, status, rereads, reread_at, received_at
          FROM payment_receipts
         WHERE provider = %(provider)s
           AND event_id = %(event_id)s
        """,
        {"provider": provider, "event_id": event_id},
    )


async def list_due(tx: Tx, provider: ProviderName, *, now: datetime, limit: int) -> list[PaymentReceipt]:
    """Return pending receipts whose event it is time to reconcile again, the longest due first.

    Those that name no checkout of ours are left out: there is nothing to ask about. So are those about a payment that
    the local provider has just called unpaid.
    """
    return await tx.all(
        PaymentReceipt,
        """
        SELECT r.provider, r.event_id, r.event_type, r.organization_id, r.checkout_id, r.status, r.rereads, r.reread_at,
               r.received_at
          FROM payment_receipts r
          JOIN checkouts c ON c.organization_id = r.organization_id AND c.id = r.checkout_id
         WHERE r.reread_at <= %(now)s
           AND r.provider = %(provider)s
           AND r.status = 'pending'
           AND (c.unpaid_at IS NULL OR c.unpaid_at <= %(asked_before)s)
         ORDER BY r.reread_at
         LIMIT %(limit)s
        """,
        {"provider": provider, "now": now, "asked_before": now - ASK_PAUSE, "limit": limit},
    )


async def update_outcome(
    tx: Tx,
    provider: ProviderName,
    event_id: str,
    *,
    status: ReceiptStatus,
    organization_id: str | None = None,
    checkout_id: str | None = None,
    amount_minor: int | None = None,
    currency: str | None = None,
    reread_at: datetime | None = None,
    now: datetime,
) -> bool:
    """Store what became of an event that is not processed yet; return False if it is, or has no receipt.

    What is None stays as it was. A receipt that stays pending keeps the time of its next reread; `reread_at` is for one
    that is pending again.
    """
    return bool(
        await tx.run(
            """
            UPDATE payment_receipts
               SET status = %(status)s,
                   organization_id = coalesce(%(organization_id)s, organization_id),
                   checkout_id = coalesce(%(checkout_id)s, checkout_id),
                   amount_minor = coalesce(%(amount_minor)s, amount_minor),
                   currency = coalesce(%(currency)s, currency),
                   reread_at = CASE %(status)s WHEN 'pending' THEN coalesce(reread_at, %(reread_at)s::timestamptz) END,
                   processed_at = CASE %(status)s WHEN 'pending' THEN NULL ELSE %(now)s::timestamptz END
             WHERE provider = %(provider)s
               AND event_id = %(event_id)s
               AND status <> 'processed'
            """,
            {
                "provider": provider,
                "event_id": event_id,
                "status": status,
                "organization_id": organization_id,
                "checkout_id": checkout_id,
                "amount_minor": amount_minor,
                "currency": currency,
                "reread_at": reread_at,
                "now": now,
            },
        )
    )


async def update_due(tx: Tx, provider: ProviderName, event_id: str, *, now: datetime) -> None:
    """Make the next reread of a pending receipt due, unless it is due already."""
    await tx.run(
        """
        UPDATE payment_receipts
           SET reread_at = %(now)s
         WHERE provider = %(provider)s
           AND event_id = %(event_id)s
           AND status = 'pending'
           AND (reread_at IS NULL OR reread_at > %(now)s)
        """,
        {"provider": provider, "event_id": event_id, "now": now},
    )


async def update_reread(
    tx: Tx, provider: ProviderName, event_id: str, *, reread_at: datetime | None, now: datetime
) -> bool:
    """Put off the next reread of a receipt that is due; return False if another worker was faster."""
    return bool(
        await tx.run(
            """
            UPDATE payment_receipts
               SET rereads = rereads + 1,
                   reread_at = %(reread_at)s
             WHERE provider = %(provider)s
               AND event_id = %(event_id)s
               AND reread_at <= %(now)s
            """,
            {"provider": provider, "event_id": event_id, "reread_at": reread_at, "now": now},
        )
    )


async def delete_foreign(tx: Tx, *, before: datetime, limit: int) -> int:
    """Delete up to `limit` receipts of events that are not ours, received before `before`; return their number.

    These were ignored, or name no organisation of ours. Receipts that another transaction has locked are skipped, so
    this never waits.
    """
    return await tx.run(
        """
        DELETE FROM payment_receipts
         WHERE (provider, event_id) IN (
                   SELECT provider, event_id
                     FROM payment_receipts
                    WHERE received_at < %(before)s
                      AND (status = 'ignored' OR organization_id IS NULL)
                    ORDER BY received_at
                    LIMIT %(limit)s
                      FOR UPDATE SKIP LOCKED
               )
        """,
        {"before": before, "limit": limit},
    )
