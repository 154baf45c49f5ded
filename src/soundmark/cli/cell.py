"""`soundmark platform cell`: name the cell of one organisation."""

from typing import Annotated

import typer

from soundmark.cli import Refused
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.core.context import Context
from soundmark.core.features.platform.cells.service import CellRefused, name_cell
from soundmark.settings import CellCommandSettings


def cell(
    organization: Annotated[str, typer.Argument(metavar="ORG", help="The organisation's id.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The cell's name in SOUNDMARK_AUDIENCE_CELLS_FILE.")],
    data_dir: DataDir = None,
) -> None:
    """Name the cell that measures for an organisation, before its first integration or import.

    Without this command, Core chooses the cell with the fewest organisations among those that take new ones. From the
    first integration or import on, the cell never changes.
    """
    given = read_settings(CellCommandSettings, data_dir)

    async def command(ctx: Context) -> None:
        await name_cell(ctx, organization, name)

    try:
        run_on_core(given, "platform", command)
    except CellRefused as refused:
        raise Refused(str(refused)) from None
    typer.echo(f"{organization} will be measured in the cell {name}")
