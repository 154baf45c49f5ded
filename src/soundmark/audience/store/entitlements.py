"""The table `entitlements`."""

from dataclasses import asdict

from soundmark.audience.domain.entitlement import Entitlement
from soundmark.kit.postgres.transaction import Tx
from soundmark.wire.shape import EntitledMode


async def insert_or_update_newer(tx: Tx, entitlement: Entitlement) -> None:
    """Store an entitlement, unless one of the same or a later revision is stored already."""
    await tx.run(
        """
        INSERT INTO entitlements AS kept (organization_id, mode, monthly_event_quota, ends_at, revision)
        VALUES (%(organization_id)s, %(mode)s, %(monthly_event_quota)s, %(ends_at)s, %(revision)s)
            ON CONFLICT (organization_id, mode) DO UPDATE
           SET monthly_event_quota = excluded.monthly_event_quota,
               ends_at = excluded.ends_at,
               revision = excluded.revision
         WHERE kept.revision < excluded.revision
        """,
        asdict(entitlement),
    )


async def find(tx: Tx, organization_id: str, mode: EntitledMode) -> Entitlement | None:
    """Return the organisation's entitlement to one mode, even if it has ended."""
    return await tx.one_or_none(
        Entitlement,
        """
        SELECT organization_id, mode, monthly_event_quota, ends_at, revision
          FROM entitlements
         WHERE organization_id = %(organization_id)s
           AND mode = %(mode)s
        """,
        {"organization_id": organization_id, "mode": mode},
    )
