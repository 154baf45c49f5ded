"""The table `audience_entitlements`."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.core.domain.audience.integration import Entitlement
from soundmark.kit.postgres.transaction import Tx
from soundmark.wire.shape import EntitledMode


@dataclass(frozen=True, slots=True)
class EntitlementPlace:
    """An organisation and a mode."""

    organization_id: str
    mode: EntitledMode


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


async def list_with_successor(
    tx: Tx, *, now: datetime, card_now: datetime, after: EntitlementPlace | None, limit: int
) -> list[EntitlementPlace]:
    """Return up to `limit` entitlements that have ended although a subscription still entitles, of all organisations.

    Card subscriptions of a known price are judged at `card_now`. Organisations that are being deleted are left out.
    They are ordered by organisation and mode.
    """
    return await tx.all(
        EntitlementPlace,
        """
        SELECT e.organization_id, e.mode
          FROM audience_entitlements e
          JOIN organizations o ON o.id = e.organization_id
         WHERE e.ends_at <= %(now)s
           AND (e.organization_id, e.mode) > (%(organization_id)s::text, %(mode)s::text)
           AND o.deletion_requested_at IS NULL
           AND EXISTS (
               SELECT
                 FROM subscriptions s
                WHERE s.organization_id = e.organization_id
                  AND s.audience_mode = e.mode
                  AND s.status IN ('trialing', 'active', 'past_due')
                  AND (s.provider = 'contract' AND s.paid_through IS NULL
                       OR s.paid_through > CASE WHEN s.provider = 'card' AND s.is_price_known THEN %(card_now)s
                                                ELSE %(now)s END)
           )
         ORDER BY e.organization_id, e.mode
         LIMIT %(limit)s
        """,
        {
            "now": now,
            "card_now": card_now,
            "organization_id": "" if after is None else after.organization_id,
            "mode": "" if after is None else after.mode,
            "limit": limit,
        },
    )
