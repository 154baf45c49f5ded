"""The table `audience_entitlements`."""

from datetime import datetime

from soundmark.core.domain.audience.integration import Entitlement
from soundmark.kit.postgres.transaction import Tx
from soundmark.wire.shape import EntitledMode


async def find(tx: Tx, organization_id: str, mode: EntitledMode) -> Entitlement | None:
    """Return the organisation's entitlement to a mode, even if it has ended."""
    return await tx.one_or_none(
        Entitlement,
        """
        SELECT mode, monthly_event_quota, ends_at, revision
          FROM audience_entitlements
         WHERE organization_id = %(organization_id)s
           AND mode = %(mode)s
        """,
        {"organization_id": organization_id, "mode": mode},
    )


async def insert_or_update(
    tx: Tx,
    organization_id: str,
    mode: EntitledMode,
    *,
    monthly_event_quota: int,
    ends_at: datetime | None,
    now: datetime,
) -> Entitlement:
    """Set the organisation's entitlement to a mode, one revision later than the one it replaces."""
    entitlement = await tx.one_or_none(
        Entitlement,
        """
        INSERT INTO audience_entitlements AS e
               (organization_id, mode, monthly_event_quota, ends_at, revision, updated_at)
        VALUES (%(organization_id)s, %(mode)s, %(monthly_event_quota)s, %(ends_at)s, 1, %(now)s)
            ON CONFLICT (organization_id, mode) DO UPDATE
           SET monthly_event_quota = EXCLUDED.monthly_event_quota,
               ends_at             = EXCLUDED.ends_at,
               revision            = e.revision + 1,
               updated_at          = EXCLUDED.updated_at
        RETURNING mode, monthly_event_quota, ends_at, revision
        """,
        {
            "organization_id": organization_id,
            "mode": mode,
            "monthly_event_quota": monthly_event_quota,
            "ends_at": ends_at,
            "now": now,
        },
    )
    assert entitlement is not None, "RETURNING returns the row that was written"
    return entitlement
