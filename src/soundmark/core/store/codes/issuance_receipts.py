"""The table `issuance_receipts`."""

from collections.abc import Sequence
from datetime import datetime

from soundmark.core.domain.codes.receipt import Receipt
from soundmark.kit.postgres.arrays import bytes_array, text_array, time_array
from soundmark.kit.postgres.transaction import AnyTx, Tx


async def find(tx: AnyTx, organization_id: str, key_digests: Sequence[bytes]) -> dict[bytes, Receipt]:
    """Return the receipts of the organisation's idempotency keys, of any age, by the digest of the key."""
    found = await tx.all(
        Receipt,
        """
        SELECT key_digest, project_id, route, request_digest, answer, created_at
          FROM issuance_receipts
         WHERE organization_id = %(organization_id)s
           AND key_digest = ANY(%(key_digests)s::bytea[])
        """,
        {"organization_id": organization_id, "key_digests": list(key_digests)},
    )
    return {receipt.key_digest: receipt for receipt in found}


async def insert_or_update(tx: AnyTx, organization_id: str, receipts: Sequence[Receipt]) -> None:
    """Insert receipts, each in place of one with the same key that has expired."""
    await tx.run(
        """
        INSERT INTO issuance_receipts
               (organization_id, key_digest, project_id, route, request_digest, answer, created_at)
        SELECT %(organization_id)s, key_digest, project_id, route, request_digest, answer, created_at
          FROM unnest(%(key_digests)s::bytea[], %(project_ids)s::text[], %(routes)s::text[],
                      %(request_digests)s::bytea[], %(answers)s::bytea[], %(created_at)s::timestamptz[])
               AS fresh (key_digest, project_id, route, request_digest, answer, created_at)
            ON CONFLICT (organization_id, key_digest) DO UPDATE
           SET project_id = EXCLUDED.project_id,
               route = EXCLUDED.route,
               request_digest = EXCLUDED.request_digest,
               answer = EXCLUDED.answer,
               created_at = EXCLUDED.created_at
        """,
        {
            "organization_id": organization_id,
            "key_digests": bytes_array(receipt.key_digest for receipt in receipts),
            "project_ids": text_array(receipt.project_id for receipt in receipts),
            "routes": text_array(receipt.route for receipt in receipts),
            "request_digests": bytes_array(receipt.request_digest for receipt in receipts),
            "answers": bytes_array(receipt.answer for receipt in receipts),
            "created_at": time_array(receipt.created_at for receipt in receipts),
        },
    )


async def update_answer(tx: Tx, organization_id: str, key_digest: bytes, answer: bytes) -> None:
    """Store the response to a checkout whose key is reserved."""
    await tx.run(
        """
        UPDATE issuance_receipts
           SET answer = %(answer)s
         WHERE organization_id = %(organization_id)s
           AND key_digest = %(key_digest)s
           AND route = 'checkout'
        """,
        {"organization_id": organization_id, "key_digest": key_digest, "answer": answer},
    )


async def delete_unanswered(tx: Tx, organization_id: str, key_digest: bytes) -> None:
    """Give up a key that a checkout has reserved and that has no response."""
    await tx.run(
        """
        DELETE FROM issuance_receipts
         WHERE organization_id = %(organization_id)s
           AND key_digest = %(key_digest)s
           AND route = 'checkout'
           AND answer = ''
        """,
        {"organization_id": organization_id, "key_digest": key_digest},
    )


async def delete_older(tx: Tx, *, than: datetime, limit: int) -> int:
    """Delete up to `limit` receipts, of every organisation, that are older than `than`; return their number.

    Receipts that another transaction has locked are skipped, so this never waits.
    """
    return await tx.run(
        """
        DELETE FROM issuance_receipts
         WHERE (organization_id, key_digest) IN (
                   SELECT organization_id, key_digest
                     FROM issuance_receipts
                    WHERE created_at < %(than)s
                    ORDER BY created_at
                    LIMIT %(limit)s
                      FOR UPDATE SKIP LOCKED
               )
        """,
        {"than": than, "limit": limit},
    )
