"""The table `accounting_outbox`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from soundmark.core.domain.billing.accounting import AccountingState, DraftInvoice, DraftStatus
from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class _NewestRow:
    subscription_id: str
    status: DraftStatus
    invoice_id: int | None


@dataclass(frozen=True, slots=True)
class DraftCount:
    """How many draft invoices have a status, and when the oldest of them was scheduled."""

    status: DraftStatus
    count: int
    oldest_at: datetime


async def insert_if_new(tx: Tx, draft: DraftInvoice, *, payment_digest: bytes) -> bool:
    """Insert a pending draft invoice, unless the payment has one; return whether it had none.

    Of two transactions with the same payment, the second waits for the first.
    """
    return bool(
        await tx.run(
            """
            INSERT INTO accounting_outbox
                   (organization_id, id, subscription_id, checkout_id, payment_digest, description, amount_minor,
                    currency, period_start, period_end, status, due_at, give_up_at, created_at, updated_at)
            VALUES (%(organization_id)s, %(id)s, %(subscription_id)s, %(checkout_id)s, %(payment_digest)s,
                    %(description)s, %(amount_minor)s, %(currency)s, %(period_start)s, %(period_end)s, 'pending',
                    %(created_at)s, %(give_up_at)s, %(created_at)s, %(created_at)s)
                ON CONFLICT (organization_id, payment_digest) DO NOTHING
            """,
            {**asdict(draft), "payment_digest": payment_digest},
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


async def find_organization_id(tx: Tx, outbox_id: str) -> str | None:
    """Return the organisation of a draft invoice; None if there is no such draft."""
    organization_id: str | None = await tx.value(
        "SELECT organization_id FROM accounting_outbox WHERE id = %(outbox_id)s", {"outbox_id": outbox_id}
    )
    return organization_id


async def lock(tx: Tx, organization_id: str, outbox_id: str) -> DraftInvoice | None:
    """Return a draft invoice of the organisation, and keep it from changing until the transaction ends.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        DraftInvoice,
        """
        SELECT organization_id, id, subscription_id, checkout_id, description, amount_minor, currency, period_start,
               period_end, status, attempts, due_at, give_up_at, created_at, posted_invoice_id
          FROM accounting_outbox
         WHERE organization_id = %(organization_id)s
           AND id = %(outbox_id)s
           FOR NO KEY UPDATE
        """,
        {"organization_id": organization_id, "outbox_id": outbox_id},
    )


async def update_processing(tx: Tx, draft: DraftInvoice, *, now: datetime) -> None:
    """Begin the attempt of `draft`, whose `due_at` is the end of its lease, in the locked row."""
    await tx.run(
        """
        UPDATE accounting_outbox
           SET status = 'processing',
               attempts = %(attempts)s,
               due_at = %(due_at)s,
               updated_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND id = %(id)s
        """,
        {**asdict(draft), "now": now},
    )


async def update_posted(tx: Tx, draft: DraftInvoice, *, invoice_id: int, now: datetime) -> None:
    """Store the accounting system's answer to the post of `draft`, unless its organisation was deleted.

    The end of a lease does not matter: the invoice exists either way. Lock order: docs/locks.md.
    """
    await tx.run(
        """
        UPDATE accounting_outbox
           SET posted_invoice_id = %(invoice_id)s,
               updated_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND id = %(id)s
        """,
        {"organization_id": draft.organization_id, "id": draft.id, "invoice_id": invoice_id, "now": now},
    )


async def update_ended(
    tx: Tx,
    draft: DraftInvoice,
    *,
    status: DraftStatus,
    invoice_id: int | None = None,
    due_at: datetime | None = None,
    now: datetime,
) -> bool:
    """Store the result of the attempt of `draft`; return whether the row still waited for it.

    It does not if another attempt has begun since the end of the lease, or if the organisation was deleted.
    """
    return bool(
        await tx.run(
            """
            UPDATE accounting_outbox
               SET status = %(status)s,
                   invoice_id = %(invoice_id)s,
                   due_at = %(new_due_at)s,
                   updated_at = %(now)s
             WHERE organization_id = %(organization_id)s
               AND id = %(id)s
               AND status = 'processing'
               AND attempts = %(attempts)s
               AND due_at = %(lease_ends_at)s
            """,
            {
                **asdict(draft),
                "lease_ends_at": draft.due_at,
                "status": status,
                "invoice_id": invoice_id,
                "new_due_at": due_at,
                "now": now,
            },
        )
    )


async def update_retried(tx: Tx, draft: DraftInvoice, *, give_up_at: datetime, now: datetime) -> None:
    """Make a locked, failed draft invoice pending again; of its attempts it keeps the id that a post was answered."""
    await tx.run(
        """
        UPDATE accounting_outbox
           SET status = 'pending',
               attempts = 0,
               due_at = %(now)s,
               give_up_at = %(give_up_at)s,
               updated_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND id = %(id)s
        """,
        {"organization_id": draft.organization_id, "id": draft.id, "give_up_at": give_up_at, "now": now},
    )


async def count_by_status(tx: Tx) -> list[DraftCount]:
    """Count the draft invoices of all organisations by status; a status that none has is left out."""
    return await tx.all(
        DraftCount,
        """
        SELECT status, count(*) AS count, min(created_at) AS oldest_at
          FROM accounting_outbox
         GROUP BY status
        """,
    )
