"""The table `webhook_replay_counts`."""

from datetime import date

from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.replay import ReplayCounts
from soundmark.kit.postgres.transaction import Tx


async def lock(tx: Tx, scope: TenantScope, *, day: date) -> ReplayCounts:
    """Lock what the organisation has replayed until the transaction ends, and return it; at first, nothing on `day`.

    Of several replays, each sees the one before. Lock order: docs/locks.md.
    """
    counts = await tx.one_or_none(
        ReplayCounts,
        """
        INSERT INTO webhook_replay_counts AS counts (organization_id, replayed_at, day, deliveries_count)
        VALUES (%(organization_id)s, '{}', %(day)s, 0)
            ON CONFLICT ON CONSTRAINT webhook_replay_counts_pkey DO UPDATE
           SET day = counts.day
        RETURNING replayed_at, day, deliveries_count
        """,
        {"organization_id": scope.organization_id, "day": day},
    )
    assert counts is not None, "a row is inserted or updated"
    return counts


async def update(tx: Tx, scope: TenantScope, counts: ReplayCounts) -> None:
    """Store what the organisation has replayed."""
    await tx.run(
        """
        UPDATE webhook_replay_counts
           SET replayed_at = %(replayed_at)s,
               day = %(day)s,
               deliveries_count = %(deliveries_count)s
         WHERE organization_id = %(organization_id)s
        """,
        {
            "organization_id": scope.organization_id,
            "replayed_at": list(counts.replayed_at),
            "day": counts.day,
            "deliveries_count": counts.deliveries_count,
        },
    )
