"""The table `offline_packs`, and the Codes that a pack may contain."""

from dataclasses import asdict
from datetime import datetime
from typing import Final

from soundmark.core.domain.codes.campaign import Campaign
from soundmark.core.domain.codes.code import ListedCode
from soundmark.core.domain.codes.offline_pack import PackRecord
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.kit.postgres.transaction import Tx

_LOCK: Final = 9  # Kind of advisory lock: docs/locks.md.


async def lock(tx: Tx, scope: TenantScope) -> bool:
    """Keep everybody else from making a pack of the organisation until the transaction ends; False if somebody does.

    It waits for nobody. Lock order: docs/locks.md.
    """
    is_locked: bool = await tx.value(
        "SELECT pg_try_advisory_xact_lock(%(kind)s, hashtext(%(organization_id)s))",
        {"kind": _LOCK, "organization_id": scope.organization_id},
    )
    return is_locked


async def hold(tx: Tx, organization_id: str) -> None:
    """Wait for the pack of the organisation that is being made, and keep the next from being made meanwhile.

    Lock order: docs/locks.md.
    """
    await tx.run(
        "SELECT pg_advisory_xact_lock_shared(%(kind)s, hashtext(%(organization_id)s))",
        {"kind": _LOCK, "organization_id": organization_id},
    )


async def find_issued_at(tx: Tx, scope: TenantScope, *, rank: int, now: datetime) -> datetime | None:
    """Return when the organisation's pack of this rank was made, the newest being the first.

    Those after `now`, before which the clock was set back, do not count.
    """
    issued_at: datetime | None = await tx.value(
        """
        SELECT issued_at
          FROM offline_packs
         WHERE organization_id = %(organization_id)s
           AND issued_at <= %(now)s
         ORDER BY issued_at DESC
        OFFSET %(newer)s
         LIMIT 1
        """,
        {"organization_id": scope.organization_id, "newer": rank - 1, "now": now},
    )
    return issued_at


async def insert(tx: Tx, scope: TenantScope, record: PackRecord) -> None:
    """Insert the record of a pack."""
    await tx.run(
        """
        INSERT INTO offline_packs (organization_id, id, project_id, campaign_id, issued_at, valid_until)
        VALUES (%(organization_id)s, %(id)s, %(project_id)s, %(campaign_id)s, %(issued_at)s, %(valid_until)s)
        """,
        {**asdict(record), "organization_id": scope.organization_id},
    )


async def find_valid_until(
    tx: Tx, organization_id: str, *, campaign: Campaign | None, now: datetime
) -> datetime | None:
    """Return until when the last pack is valid that may name a Code of the campaign; None if there is no such pack.

    Those are the packs of the campaign and of its whole project; without a campaign, all of the organisation.
    """
    valid_until: datetime | None = await tx.value(
        """
        SELECT max(valid_until)
          FROM offline_packs
         WHERE organization_id = %(organization_id)s
           AND valid_until > %(now)s
           AND (%(campaign_id)s::text IS NULL
                OR campaign_id = %(campaign_id)s
                OR (campaign_id IS NULL AND project_id = %(project_id)s))
        """,
        {
            "organization_id": organization_id,
            "campaign_id": None if campaign is None else campaign.id,
            "project_id": None if campaign is None else campaign.project_id,
            "now": now,
        },
    )
    return valid_until


async def list_codes(tx: Tx, scope: TenantScope, record: PackRecord, *, limit: int) -> list[ListedCode]:
    """Return up to `limit` Codes, in no particular order, that are active when the pack is made and not measured."""
    return await tx.all(
        ListedCode,
        """
        SELECT xr_id, organization_id, project_id, campaign_id, issuer, issued_at, expires_at, broadcast_token,
               audience_integration_id, key_id, revoked_at
          FROM codes
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
           AND (%(campaign_id)s::text IS NULL OR campaign_id = %(campaign_id)s)
           AND revoked_at IS NULL
           AND expires_at > %(issued_at)s
           AND audience_integration_id IS NULL
         LIMIT %(limit)s
        """,
        {
            "organization_id": scope.organization_id,
            "project_id": record.project_id,
            "campaign_id": record.campaign_id,
            "issued_at": record.issued_at,
            "limit": limit,
        },
        plan_anew=True,  # A campaign has an index of its own.
    )
