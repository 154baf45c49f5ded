"""The cell that has everything of an organisation: found, or given by its first integration or import."""

from typing import Final

import structlog

from soundmark.core.channel.audience import AudienceChannel
from soundmark.core.context import Context
from soundmark.core.problems import AudienceUnavailable
from soundmark.core.store.audience import cells
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.transaction import Tx

_log: Final = structlog.get_logger()


async def find_audience(ctx: Context, tx: Tx, organization_id: str) -> AudienceChannel | None:
    """Return the Audience that has everything of an organisation; None if there is nothing anywhere.

    Raises: AudienceUnavailable if the organisation's cell is not listed.
    """
    cell = await cells.find(tx, organization_id)
    return None if cell is None else ctx.cells.open(cell)


async def read_audience(ctx: Context, organization_id: str) -> AudienceChannel | None:
    """Do the same as `find_audience` in a transaction of its own.

    Raises: AudienceUnavailable; DatabaseUnavailable.
    """
    async with ctx.db.transaction(tenant=organization_id) as tx:
        return await find_audience(ctx, tx, organization_id)


async def propose_cell(ctx: Context, organization_id: str) -> str | None:
    """Return the cell that an organisation should be given, for `cells.update_assigned`; None if it has one.

    It is the one that the operator wants, or of those that take new organisations the one that has the fewest.

    Raises: AudienceUnavailable if no cell takes new organisations; DatabaseUnavailable.
    """
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        its_cells = await cells.find_both(tx, organization_id)
        if its_cells is None or its_cells.audience_cell is not None:
            return None
        if its_cells.preferred_audience_cell is not None:
            return its_cells.preferred_audience_cell
        taking = ctx.cells.names_that_take_new()
        counts = {each.cell: each.organizations for each in await cells.count_organizations(tx)} if taking[1:] else {}
    if not taking:
        _log.error("no_cell_takes_new", organization_id=organization_id)
        raise AudienceUnavailable
    return min(taking, key=lambda name: counts.get(name, 0))


async def list_cells_in_use(ctx: Context) -> list[str]:
    """Return the names of the cells that an organisation has, or shall have.

    Raises: DatabaseUnavailable.
    """
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        return await cells.list_in_use(tx)


class CellsInUse:
    """Finds out whether a cell is left out that an organisation has: what is in it is out of reach."""

    def __init__(self, ctx: Context) -> None:
        self._ctx: Final = ctx
        self._missing: list[str] = []

    async def are_listed(self) -> bool:
        """Return whether every cell in use is listed; log the names of those that are not, once.

        Without the database nothing is said against the cells: that is another check.
        """
        try:
            in_use = await list_cells_in_use(self._ctx)
        except DatabaseUnavailable:
            return True
        missing = sorted(set(in_use) - self._ctx.cells.names())
        if missing and missing != self._missing:
            _log.error("cells_missing", cells=missing)
        self._missing = missing
        return not missing
