"""What the commands that call Core's API share: their client and their output."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text
from soundmark_sdk.client import ApiProblem, Client, ClientFailure, TenantNotGiven
from soundmark_sdk.client.records import Page, Record

from soundmark.cli import Refused
from soundmark.cli.defaults import TenantChoice, find_choice
from soundmark.cli.first_contact import FirstContact
from soundmark.cli.intents import printable
from soundmark.cli.options import Connection
from soundmark.cli.service import Service, find_credential, find_service
from soundmark.kit.clock import SystemClock
from soundmark.kit.text.months import month_of

R = TypeVar("R", bound=Record)

# Four pauses, at most four seconds in total, because a person is waiting.
_ATTEMPTS_MAX: Final = 5
# The largest archive over a slow line. Whoever watches the progress can press Ctrl-C.
_DOWNLOAD_TIMEOUT_S: Final = 3600.0
# Wide enough for full ids and frames side by side, if the output is no terminal.
_WIDTH: Final = 120

_KEY_PREFIX: Final = "xak_"  # Contract, section 1.
_MONTHLY: Final = frozenset({"quota_exceeded", "event_quota_exceeded"})
_TENANT_UNKNOWN: Final = frozenset({"organization_not_found", "project_not_found"})


@contextmanager
def open_client(
    connection: Connection, organization: str | None = None, project: str | None = None
) -> Iterator[Client]:
    """Yield a client of the service that the options, the environment or the data dir names, in this order.

    Its calls are about `organization` and `project`. The default is the API key's own or, for a person, the choice
    made with `soundmark use` for this service.

    Raises: Refused, also in place of the error of a call in the block; typer.BadParameter if the organisation or
        project is unknown.
    """
    service = find_service(connection)
    credential = find_credential(service, connection.key_file)
    organization_id, project_id = find_tenant(service, credential, organization, project)
    try:
        client = Client(
            service.base_url,
            credential,
            organization_id=organization_id,
            project_id=project_id,
            attempts_max=_ATTEMPTS_MAX,
            download_timeout_s=_DOWNLOAD_TIMEOUT_S,
            transport=FirstContact(service.base_url),
        )
    except ValueError as error:
        raise Refused(f"{printable(service.base_url)}: {error}") from None
    with client:
        try:
            yield client
        except ClientFailure as failure:
            is_chosen = organization_id is not None and organization is None
            hint = "; `soundmark use` chose it" if is_chosen and _is_tenant_unknown(failure) else ""
            raise Refused(explain_failure(failure) + hint) from None
        except TenantNotGiven as missing:
            option = "--organization" if missing.missing == "organization_id" else "--project"
            raise typer.BadParameter(f"give {option}, or choose one with `soundmark use`") from None
        except ValueError as error:
            # The client cannot send this: an intent without a canonical form, or a malformed id.
            raise Refused(str(error)) from None


def find_tenant(
    service: Service, credential: str, organization: str | None, project: str | None
) -> tuple[str | None, str | None]:
    """Return the ids of the options; for a person, the choice made with `soundmark use` completes them.

    Raises: Refused if the choices cannot be read.
    """
    choice = None if credential.startswith(_KEY_PREFIX) else find_choice(service.base_url)
    return _choose_tenant(organization, project, choice)


def explain_failure(failure: ClientFailure) -> str:
    """Return one line for the user about a failed call."""
    line = str(failure)
    if isinstance(failure, ApiProblem):
        if failure.code in _MONTHLY:
            line = f"{line.removesuffix('.')}; the quota resets at {quota_return(failure.retry_after_s)}"
        if failure.request_id is not None:
            line += f" [request {failure.request_id}]"
    return printable(line).replace("\n", " ")


def quota_return(retry_after_s: float | None = None) -> str:
    """Return when a quota resets: after `retry_after_s` or, if None, when the next month begins.

    It is rounded to the minute, since the seconds were counted when the response was made.
    """
    now = SystemClock().now().astimezone(UTC)
    moment = month_of(now).ends_at if retry_after_s is None else now + timedelta(seconds=retry_after_s + 30)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def show_json(document: Mapping[str, Any]) -> None:
    """Print the API's response as one line."""
    # Escapes make it harmless to a terminal; a program reads them as the characters that they stand for.
    typer.echo(printable(json.dumps(document, ensure_ascii=False, separators=(",", ":"))))


def show_outcome(record: Record, line: str, *, as_json: bool) -> None:
    """Print what a command did: the API's response, or one line for people."""
    if as_json:
        show_json(record.document)
    else:
        typer.echo(line)


def show_table(headings: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print rows of ids, texts, numbers, times and None."""
    table = Table()
    for number, heading in enumerate(headings):
        # The first is the id that other commands take.
        table.add_column(heading, overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    _console().print(table)


def show_page(page: Page[R], headings: Iterable[str], row: Callable[[R], Iterable[Any]], *, as_json: bool) -> None:
    """Print one page of a list, and how to get the next one."""
    if as_json:
        show_json(page.document)
        return
    show_table(headings, map(row, page.data))
    show_more(page)


def show_more(page: Page[R]) -> None:
    """Print how to get the next page of a list, if there is one."""
    if page.next_cursor is not None:
        typer.echo(f"more: --cursor {page.next_cursor}", err=True)


def show_facts(facts: Iterable[tuple[str, Any]]) -> None:
    """Print facts about one thing, one on each line."""
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, cell(value))
    _console().print(table)


def show_made(
    record: Record,
    headings: Iterable[str],
    row: Sequence[Any],
    *,
    as_json: bool,
    quiet: bool = False,
) -> None:
    """Print what a command created or changed."""
    if quiet:
        typer.echo(row[0])
    elif as_json:
        show_json(record.document)
    else:
        show_table(headings, [row])


def check_new_name(name: str | None, *, no_name: bool) -> None:
    """Require either a new name or its removal.

    Raises: typer.BadParameter.
    """
    if (name is None) != no_name:
        raise typer.BadParameter("give either NAME or --no-name")


def make_label(name: str) -> str:
    """Return the name of a member for people, such as "API keys" for `api_keys`."""
    return name.replace("_", " ").capitalize().replace("Api ", "API ")


def cell(value: Any) -> Text:
    """Return a value for people, in which nobody's text can control the terminal."""
    if isinstance(value, datetime):
        return Text(f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    return Text("" if value is None else printable(str(value)))


def progress_of(*columns: ProgressColumn) -> Progress:
    """Return a progress bar on standard error that disappears at the end; none if standard error is no terminal."""
    console = Console(stderr=True)
    shown = columns or (MofNCompleteColumn(),)
    text = TextColumn("{task.description}")
    return Progress(text, BarColumn(), *shown, console=console, transient=True, disable=not console.is_terminal)


def _console() -> Console:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH)
    return console


def _choose_tenant(
    organization: str | None, project: str | None, choice: TenantChoice | None
) -> tuple[str | None, str | None]:
    """Return the ids of the options, completed by the choice; never use its project with another organisation."""
    if choice is None or organization not in {None, choice.organization_id}:
        return organization, project
    return choice.organization_id, project if project is not None else choice.project_id


def _is_tenant_unknown(failure: ClientFailure) -> bool:
    return isinstance(failure, ApiProblem) and failure.code in _TENANT_UNKNOWN
