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
    """Manage the draft invoices in the accounting system."""


@app.command()
def retry(
    outbox_id: Annotated[str, typer.Argument(metavar="OUTBOX_ID", help="The draft's id from the log: acc_…")],
    data_dir: DataDir = None,
) -> None:
    """Requeue a failed draft invoice, which Core then retries for another day.

    First fix the cause that the log names. A draft that already exists in the accounting system is found by its
    external reference (svc: and the id) and is not created again.
    """
    given = read_settings(CoreDatabaseSettings, data_dir)

    async def command(ctx: Context) -> None:
        await retry_draft(ctx, outbox_id)

    try:
        run_on_core(given, "platform", command)
    except RetryRefused as refused:
        raise Refused(str(refused)) from None
    typer.echo(f"{outbox_id} is pending again")
