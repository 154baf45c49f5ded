"""How Codes are shown at a terminal."""

from datetime import datetime
from typing import Any, Final

import typer
from soundmark_sdk.client.records import Code, ListedCode

from soundmark.cli.api import show_json, show_table
from soundmark.cli.intents import format_intent

HEADINGS: Final = ("XR Code", "Frame", "Status", "Issued", "Expires")


def show_issued(issued: list[Code], document: Any, *, as_json: bool, quiet: bool) -> None:
    """Print the Codes that were issued: as a table, as their JSON `document`, or only their ids."""
    if quiet:
        for code in issued:
            typer.echo(code.xr_id)
    elif as_json:
        show_json(document)
    else:
        show_table(HEADINGS, map(code_row, issued))


def code_row(code: ListedCode) -> tuple[str | datetime | None, ...]:
    """Return the cells of a Code below `HEADINGS`."""
    return (code.xr_id, code.broadcast_frame, code.status, code.issued_at, code.expires_at)


def row_with_intent(code: ListedCode) -> tuple[str | datetime | None, ...]:
    """Return the cells of a Code in a list with intents: those below `HEADINGS`, and its intent."""
    return (*code_row(code), None if code.intent is None else format_intent(code.intent))
