"""The table `accounting_outbox`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from soundmark.core.domain.billing.accounting import AccountingState, DraftInvoice, OutboxStatus
from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class _NewestRow:
    subscription_id: str
    status: OutboxStatus
    invoice_id: int | None


async def insert_if_new(
    tx: Tx,
    organization_id: str,
    outbox_id: str,
    draft: DraftInvoice,
    *,
    subscription_id: str,
    checkout_id: str,
    payment_digest: bytes,
    give_up_at: datetime,
    now: datetime,
) -> bool:
    """Insert a pending draft invoice, unless the payment has one; return whether it had none.

    Of two transactions with the same payment, the second waits for the first.
    """
    return bool(
        await tx.run(
            """
            INSERT INTO accounting_outbox
                   (organization_id, id, subscription_id, checkout_id, payment_digest, description, amount_minor,
                    currency, period_start, period_end, status, due_at, give_up_at, created_at, updated_at)
            VALUES (%(organization_id)s, %(outbox_id)s, %(subscription_id)s, %(checkout_id)s, %(payment_digest)s,
                    %(description)s, %(amount_minor)s, %(currency)s, %(period_start)s, %(period_end)s, 'pending',
                    %(now)s, %(give_up_at)s, %(now)s, %(now)s)
                ON CONFLICT (organization_id, payment_digest) DO NOTHING
            """,
            {
                "organization_id": organization_id,
                "outbox_id": outbox_id,
                "subscription_id": subscription_id,
                "checkout_id": checkout_id,
                "payment_digest": payment_digest,
                "description": draft.description,
                "amount_minor": draft.amount_minor,
                "currency": draft.currency,
                "period_start": draft.period_start,
                "period_end": draft.period_end,
                "give_up_at": give_up_at,
                "now": now,
            },
        )
    )


async def find_newest_outbox(
    tx: Tx, organization_id: str, subscription_ids: Sequence[str]
) -> dict[str, AccountingState]:
    """Return the state of each subscription's newest draft invoice; subscriptions without any are left out."""
    rows = await tx.all(
        _NewestRow,
        """
        SELECT DISTINCT ON (subscription_id) subscription_id, status, invoice_id
          FROM accounting_outbox
         WHERE organization_id = %(organization_id)s
           AND subscription_id = ANY(%(subscription_ids)s)
         ORDER BY subscription_id, created_at DESC, id DESC
        """,
        {"organization_id": organization_id, "subscription_ids": list(subscription_ids)},
    )
    return {row.subscription_id: AccountingState(row.status, row.invoice_id) for row in rows}
