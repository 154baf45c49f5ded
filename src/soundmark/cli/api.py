"""Commands that call Core's API: whom they call, as whom, and how they show what is answered."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text
from soundmark_sdk.client import ApiProblem, Client, ClientFailure
from soundmark_sdk.client.records import Page, Record

from soundmark.cli.deployment import read_settings
from soundmark.cli.intents import printable
from soundmark.cli.outcome import Refused
from soundmark.embedded.data_dir import UP_FILE, DataDirRefused, read_up_file
from soundmark.kit.timestamps import parse_timestamp
from soundmark.settings import ClientSettings

R = TypeVar("R", bound=Record)

# Four pauses, of four seconds at most together: a person waits for it.
_ATTEMPTS_MAX: Final = 5
# Ids and frames in full, side by side, where nobody says how wide the paper is.
_WIDTH: Final = 120

BaseUrl = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Where Core is; SOUNDMARK_BASE_URL unless told.")
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key-file", metavar="FILE", help="Holds a server key, or an access token; not SOUNDMARK_API_KEY."),
]
UpDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Call a running `soundmark up`, without a key as its operator."),
]
Organization = Annotated[str, typer.Option("--organization", metavar="ORG", help="The organisation's id.")]
Project = Annotated[str, typer.Option("--project", metavar="PROJECT", help="The project's id.")]
ProjectFilter = Annotated[str | None, typer.Option("--project", metavar="PROJECT", help="Only those of this project.")]
AsJson = Annotated[bool, typer.Option("--json", help="What the API answers, as one line of JSON.")]
PageLimit = Annotated[int, typer.Option("--limit", min=1, max=100, help="How many at most.")]
PageCursor = Annotated[str | None, typer.Option("--cursor", help="Go on where the page before ended.")]


def read_moment(text: str) -> datetime:
    """The moment that an option names."""
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


@contextmanager
def calling(base_url: str | None, key_file: Path | None, data_dir: Path | None) -> Iterator[Client]:
    """A client of the service that the options and, below them, the environment and the data dir name.

    Raises: Refused, also in the place of whatever a call in the block fails with.
    """
    given = read_settings(ClientSettings, data_dir)
    address = given.base_url if base_url is None else base_url
    try:
        client = Client(address, _credential(given, key_file, data_dir), attempts_max=_ATTEMPTS_MAX)
    except ValueError as error:
        raise Refused(f"{printable(address)}: {error}") from None
    with client:
        try:
            yield client
        except ClientFailure as failure:
            raise Refused(said(failure)) from None
        except ValueError as error:
            # What the client cannot send: an intent without a canonical form, an id that is none.
            raise Refused(str(error)) from None


def said(failure: ClientFailure) -> str:
    """What a failed call is to the reader, in one line."""
    line = str(failure)
    if isinstance(failure, ApiProblem) and failure.request_id is not None:
        line += f" [request {failure.request_id}]"
    return printable(line).replace("\n", " ")


def show_json(document: Mapping[str, Any]) -> None:
    """Print what the API answered, as one line."""
    # As one value and harmless to a terminal; to a program an escape is the character that it stands for.
    typer.echo(printable(json.dumps(document, ensure_ascii=False, separators=(",", ":"))))


def show_table(headings: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print rows of ids, texts, numbers, moments and None."""
    table = Table()
    for number, heading in enumerate(headings):
        # The first is the id that other commands take.
        table.add_column(heading, overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    _console().print(table)


def show_page(page: Page[R], headings: Iterable[str], row: Callable[[R], Iterable[Any]], *, as_json: bool) -> None:
    """Print one page of a list, and how to come to the next one."""
    if as_json:
        show_json(page.document)
        return
    show_table(headings, map(row, page.data))
    if page.next_cursor is not None:
        typer.echo(f"more: --cursor {page.next_cursor}", err=True)


def show_facts(facts: Iterable[tuple[str, Any]]) -> None:
    """Print one thing, a fact a line."""
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, cell(value))
    _console().print(table)


def cell(value: Any) -> Text:
    """A value for people; what others named cannot drive the terminal."""
    if isinstance(value, datetime):
        return Text(f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    return Text("" if value is None else printable(str(value)))


def progress_of(*columns: ProgressColumn) -> Progress:
    """A bar on standard error that leaves nothing behind; nothing at all where nobody watches."""
    console = Console(stderr=True)
    shown = columns or (MofNCompleteColumn(),)
    text = TextColumn("{task.description}")
    return Progress(text, BarColumn(), *shown, console=console, transient=True, disable=not console.is_terminal)


def _console() -> Console:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH)
    return console


def _credential(given: ClientSettings, key_file: Path | None, data_dir: Path | None) -> str:
    if key_file is not None:
        return _read_key(key_file)
    if given.api_key is not None:
        return given.api_key.reveal()
    if data_dir is not None:
        try:
            token = read_up_file(data_dir / UP_FILE).get("operator_token")
        except DataDirRefused as refused:
            raise Refused(str(refused)) from None
        if isinstance(token, str):
            return token
    raise Refused("there is no key to call with: set SOUNDMARK_API_KEY, or give --key-file or --data-dir")


def _read_key(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refused(f"{file} holds no key") from None
