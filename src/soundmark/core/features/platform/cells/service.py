"""The cell that an operator names for an organisation, before anything of it is in Audience."""

from soundmark.core.context import Context
from soundmark.core.store.audience import cells
from soundmark.kit.text.ids import may_be_id


class CellRefused(Exception):
    """The organisation cannot be given this cell; the message is for the operator."""


async def name_cell(ctx: Context, organization_id: str, cell: str) -> None:
    """Name the cell that an organisation is given at its first integration or import, even if it takes no new ones.

    Until then another one can be named.

    Raises: CellRefused for an unknown cell or organisation, one that is being deleted, or one that has its cell.
    """
    if cell not in ctx.cells.names():
        raise CellRefused(f"there is no cell {cell!r}; there are {', '.join(sorted(ctx.cells.names()))}")
    if not may_be_id(organization_id):
        raise CellRefused(f"there is no organisation {organization_id!r}")
    async with ctx.db.transaction(tenant=organization_id) as tx:
        if await cells.update_preferred(tx, organization_id, cell):
            return
        its_cells = await cells.find_both(tx, organization_id)
    if its_cells is None or its_cells.audience_cell is None:
        raise CellRefused(f"there is no organisation {organization_id}, or it is being deleted")
    raise CellRefused(f"everything of {organization_id} is in the cell {its_cells.audience_cell}, and stays there")
