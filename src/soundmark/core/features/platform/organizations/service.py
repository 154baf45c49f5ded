"""Commands on any organisation: list, suspend, restore."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.organization import OrganizationStatus, PlatformOrganization
from soundmark.core.domain.tenancy.scope import PLATFORM
from soundmark.core.problems import OrganizationNotFound
from soundmark.core.steps import audit
from soundmark.core.store.codes import offline_packs
from soundmark.core.store.tenancy import suspensions
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.database_server import read_server
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Page, Position, cut_page

CARRY: Final = "carry_suspension"
TELL: Final = "tell_owners_of_suspension"
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SuspendedOrganization:
    """A suspended organisation, and until when offline packs of it may still be answered from; None without any."""

    organization: PlatformOrganization
    packs_valid_until: datetime | None


async def list_organizations(
    ctx: Context, *, search: str | None, status: OrganizationStatus | None, before: Position | None, limit: int
) -> Page[PlatformOrganization]:
    """Return the organisations of the deployment, newest first.

    Source: contract, section 13.
    """
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        rows = await suspensions.list_organizations(tx, search=search, status=status, before=before, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(row.created_at, row.id))


async def suspend_organization(
    ctx: Context, organization_id: str, *, reason: str, subject_id: str
) -> SuspendedOrganization:
    """Suspend an organisation: from the answer on, no process returns an intent of it, and nothing is added to it.

    1. Lock the organisation's row, and so wait for every request that is adding to it; a later one waits, and is
       refused. Mark it, which every look-up reads in its own statement. A job carries it to Audience.
    2. Outlast the leases of processes that may still read an old primary.

    Of a suspended one, another reason replaces the first; the same changes nothing.

    Raises: OrganizationNotFound.
    Source: contract, section 13.
    """
    async with ctx.db.transaction(tenant=organization_id) as tx:
        found = await suspensions.lock(tx, organization_id)
        if found is None:
            raise OrganizationNotFound
        now = ctx.clock.now()
        if found.suspension_reason != reason:
            is_new, suspended_at = found.suspended_at is None, found.suspended_at or now
            found = await suspensions.update_suspended(tx, organization_id, suspended_at=suspended_at, reason=reason)
            await audit.record_as(
                tx, PLATFORM, ctx.entropy, "organization.suspended", organization_id=organization_id, now=now
            )
            if is_new:
                await _tell(ctx, tx, organization_id, "suspended", now=now)
            _log.info("organization_suspended", organization_id=organization_id, subject_id=subject_id)
        # A request that was making a pack held the organisation's row, and has been waited for.
        valid_until = await offline_packs.find_valid_until(tx, organization_id, campaign=None, now=ctx.clock.now())
        server = await read_server(tx)
    await ctx.promotions.outlast_leases(server)
    return SuspendedOrganization(found, valid_until)


async def restore_organization(ctx: Context, organization_id: str, *, subject_id: str) -> PlatformOrganization:
    """End the suspension of an organisation: its Codes answer as before. One that is not suspended is left as it is.

    Raises: OrganizationNotFound.
    Source: contract, section 13.
    """
    async with ctx.db.transaction(tenant=organization_id) as tx:
        found = await suspensions.lock(tx, organization_id)
        if found is None:
            raise OrganizationNotFound
        if found.suspended_at is None:
            return found
        now = ctx.clock.now()
        restored = await suspensions.update_restored(tx, organization_id)
        await audit.record_as(
            tx, PLATFORM, ctx.entropy, "organization.restored", organization_id=organization_id, now=now
        )
        await _tell(ctx, tx, organization_id, "restored", now=now)
    _log.info("organization_restored", organization_id=organization_id, subject_id=subject_id)
    return restored


async def _tell(ctx: Context, tx: Tx, organization_id: str, change: str, *, now: datetime) -> None:
    """Have Audience and the owners told."""
    lock = f"suspension:{organization_id}"
    await ctx.queue.defer(tx, CARRY, lock=lock, organization_id=organization_id)
    at_s = str(int(now.timestamp()))
    await ctx.queue.defer(tx, TELL, lock=f"{lock}:mail", organization_id=organization_id, change=change, at_s=at_s)
