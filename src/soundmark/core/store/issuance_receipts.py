"""The table `issuance_receipts`."""

from datetime import datetime

from soundmark.core.domain.receipt import Attempt, Receipt
from soundmark.core.domain.scope import TenantScope
from soundmark.kit.postgres import Tx


async def find(tx: Tx, scope: TenantScope, attempt: Attempt) -> Receipt | None:
    """What the organisation's key was answered, however long ago."""
    return await tx.one_or_none(
        Receipt,
        """
        SELECT route, request_digest, answer, created_at
          FROM issuance_receipts
         WHERE organization_id = %(organization_id)s
           AND key_digest = %(key_digest)s
        """,
        {"organization_id": scope.organization_id, "key_digest": attempt.key_digest},
    )


async def upsert(  # noqa: PLR0913 - one argument for each column
    tx: Tx, scope: TenantScope, attempt: Attempt, *, project_id: str, answer: bytes, now: datetime
) -> None:
    """Remember an answer, in the place of one that is too old to count."""
    await tx.run(
        """
        INSERT INTO issuance_receipts
               (organization_id, key_digest, project_id, route, request_digest, answer, created_at)
        VALUES (%(organization_id)s, %(key_digest)s, %(project_id)s, %(route)s, %(request_digest)s, %(answer)s,
                %(now)s)
            ON CONFLICT (organization_id, key_digest) DO UPDATE
           SET project_id = EXCLUDED.project_id,
               route = EXCLUDED.route,
               request_digest = EXCLUDED.request_digest,
               answer = EXCLUDED.answer,
               created_at = EXCLUDED.created_at
        """,
        {
            "organization_id": scope.organization_id,
            "key_digest": attempt.key_digest,
            "project_id": project_id,
            "route": attempt.route,
            "request_digest": attempt.request_digest,
            "answer": answer,
            "now": now,
        },
    )


async def delete_older(tx: Tx, *, than: datetime, limit: int) -> int:
    """Forget up to `limit` receipts, of every organisation, that are older; how many it were."""
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
