"""`soundmark tickets`: support tickets."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer
from soundmark_sdk.client import ApiProblem, ClientFailure
from soundmark_sdk.client.records import ListedTicket, Ticket
from soundmark_sdk.client.ticket_requests import choose_request_id

from soundmark.cli import Refused
from soundmark.cli.api import open_client, show_facts, show_json, show_made, show_page
from soundmark.cli.intents import open_standard_input, printable
from soundmark.cli.options import OrganizationCall, Paging, Quiet, command

app = typer.Typer(add_completion=False, no_args_is_help=True)

_Message = Annotated[str, typer.Argument(metavar="MESSAGE", help="The message; - reads it from standard input.")]

_HEADINGS: Final = ("Ticket", "Subject", "Status", "Created")
_STANDARD_INPUT: Final = "-"
_SERVER_ERROR: Final = 500


@app.callback()
def tickets() -> None:
    """Contact the operator of this service. An API key cannot do this."""


@command(app)
def create(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="The subject, in one line.")],
    message: _Message,
    *,
    request_id: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Repeating the command with the same key opens no second ticket."),
    ] = None,
    quiet: Quiet = False,
    call: OrganizationCall,
) -> None:
    """Open a support ticket. The answer arrives by e-mail and in `soundmark tickets show`."""
    text = _read(message)
    with (
        open_client(call.connection, call.organization) as client,
        _requesting(request_id, "it opens no second ticket") as key,
    ):
        ticket = client.tickets.create(subject, text, request_id=key)
    show_made(ticket, _HEADINGS, _row(ticket), as_json=call.as_json, quiet=quiet)


@command(app)
def reply(
    ticket_id: Annotated[str, typer.Argument(metavar="TICKET", help="The ticket's id.")],
    message: _Message,
    *,
    request_id: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Repeating the command with the same key adds no second reply."),
    ] = None,
    quiet: Quiet = False,
    call: OrganizationCall,
) -> None:
    """Reply to a support ticket, which reopens a closed one."""
    text = _read(message)
    with (
        open_client(call.connection, call.organization) as client,
        _requesting(request_id, "it adds no second reply") as key,
    ):
        ticket = client.tickets.reply(ticket_id, text, request_id=key)
    show_made(ticket, _HEADINGS, _row(ticket), as_json=call.as_json, quiet=quiet)


@command(app, "list")
def list_tickets(*, paging: Paging, call: OrganizationCall) -> None:
    """List the support tickets of an organisation, newest first."""
    with open_client(call.connection, call.organization) as client:
        page = client.tickets.page(limit=paging.limit, cursor=paging.cursor)
    show_page(page, _HEADINGS, _row, as_json=call.as_json)


@command(app)
def show(
    ticket_id: Annotated[str, typer.Argument(metavar="TICKET", help="The ticket's id.")], *, call: OrganizationCall
) -> None:
    """Show a support ticket with its messages."""
    with open_client(call.connection, call.organization) as client:
        ticket = client.tickets.get(ticket_id)
    if call.as_json:
        show_json(ticket.document)
        return
    show_facts(_facts(ticket))
    for message in ticket.messages:
        typer.echo(f"\n{message.author}, {message.created_at:%Y-%m-%d %H:%M} UTC")
        typer.echo(printable(message.body))


def _read(message: str) -> str:
    if message != _STANDARD_INPUT:
        return message
    try:
        # Not as the locale says: the text may come from another machine.
        return io.TextIOWrapper(open_standard_input(), "utf-8").read()
    except UnicodeDecodeError:
        raise Refused("standard input is not UTF-8") from None


@contextmanager
def _requesting(request_id: str | None, promise: str) -> Iterator[str]:
    """Yield the key of a request, and say how to repeat one that failed."""
    key = choose_request_id(request_id)
    try:
        yield key
    except ClientFailure as failure:
        is_refused = isinstance(failure, ApiProblem) and failure.status < _SERVER_ERROR
        if not is_refused:  # A refused request did nothing, and is refused again.
            typer.echo(f"Repeat the command with --request-id {key}: {promise}.", err=True)
        raise


def _row(ticket: ListedTicket) -> tuple[object, ...]:
    return (ticket.id, ticket.subject, ticket.status, ticket.created_at)


def _facts(ticket: Ticket) -> list[tuple[str, object]]:
    return [
        ("Ticket", ticket.id),
        ("Subject", ticket.subject),
        ("Status", ticket.status),
        ("Request", ticket.request_id),
        ("Created", ticket.created_at),
    ]
