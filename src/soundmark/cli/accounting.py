"""`soundmark platform accounting`: an operator's work on draft invoices."""

from typing import Annotated

import typer

from soundmark.cli import Refused
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.core.context import Context
from soundmark.core.features.billing.accounting.service import RetryRefused, retry_draft
from soundmark.settings import CoreDatabaseSettings

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def accounting() -> None:
    """Look after the draft invoices in the accounting system."""


@app.command()
def retry(
    outbox_id: Annotated[str, typer.Argument(metavar="OUTBOX_ID", help="The draft's id, as the log has it: acc_…")],
    data_dir: DataDir = None,
) -> None:
    """Send a draft invoice that failed back to the queue, where it is tried for another day.

    First fix the cause that the log names. A draft that is already in the accounting system is found there
    by its external reference, svc: and the id, and is not made again.
    """
    given = read_settings(CoreDatabaseSettings, data_dir)

    async def command(ctx: Context) -> None:
        await retry_draft(ctx, outbox_id)

    try:
        run_on_core(given, "platform", command)
    except RetryRefused as refused:
        raise Refused(str(refused)) from None
    typer.echo(f"{outbox_id} is pending again")
