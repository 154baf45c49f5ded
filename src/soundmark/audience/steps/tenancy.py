"""Adding rows only for tenants that have not left."""

from soundmark.audience.domain.purge import digests_covering
from soundmark.audience.problems import TenantPurged
from soundmark.audience.store import purges
from soundmark.kit.postgres.transaction import Tx


async def hold_unpurged(tx: Tx, organization_id: str, project_id: str | None) -> None:
    """Make sure that neither the organisation nor the project is being purged, and keep it so until the end of `tx`.

    Every command calls it that adds rows for a tenant without the row of an integration. Lock order: docs/locks.md.

    Raises: TenantPurged.
    """
    await purges.hold_tenant(tx, organization_id)
    if await purges.find_any(tx, digests_covering(organization_id, project_id)):
        raise TenantPurged
