"""The table `campaigns`."""

from soundmark.core.domain.campaign import Campaign
from soundmark.core.domain.scope import TenantScope
from soundmark.kit.postgres import Tx


async def find(tx: Tx, scope: TenantScope, campaign_id: str) -> Campaign | None:
    """One campaign of the organisation, and of the one project that the caller is confined to."""
    return await tx.one_or_none(
        Campaign,
        """
        SELECT id, organization_id, project_id, name, starts_at, ends_at, created_at, archived_at
          FROM campaigns
         WHERE organization_id = %(organization_id)s
           AND (%(confined_to)s::text IS NULL OR project_id = %(confined_to)s)
           AND id = %(campaign_id)s
        """,
        {"organization_id": scope.organization_id, "confined_to": scope.project_id, "campaign_id": campaign_id},
    )


async def hold(tx: Tx, scope: TenantScope, campaign_id: str) -> Campaign | None:
    """`find`, and nobody changes or stops it until the transaction ends. Lock order: docs/locks.md."""
    return await tx.one_or_none(
        Campaign,
        """
        SELECT id, organization_id, project_id, name, starts_at, ends_at, created_at, archived_at
          FROM campaigns
         WHERE organization_id = %(organization_id)s
           AND (%(confined_to)s::text IS NULL OR project_id = %(confined_to)s)
           AND id = %(campaign_id)s
           FOR SHARE
        """,
        {"organization_id": scope.organization_id, "confined_to": scope.project_id, "campaign_id": campaign_id},
    )
