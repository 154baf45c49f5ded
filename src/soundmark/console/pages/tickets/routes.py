"""The pages of support tickets."""

import re
from http import HTTPStatus
from typing import Final

from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.forms import FormMalformed
from soundmark.console.routing import form_page, page
from soundmark.console.visit import Visit
from soundmark.kit.text import base64url

_KEY_BYTES: Final = 32
# HTML allows none of these characters; people see that something was there.
_UNPRINTABLE: Final = dict.fromkeys(
    {*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}, "\N{REPLACEMENT CHARACTER}"
)
_REQUEST_ID: Final = re.compile(r"supreq_[A-Za-z0-9_-]{16,64}")


async def show_list(visit: Visit) -> Response:
    """Show the tickets of an organisation."""
    tickets = await visit.core.tickets.page(cursor=visit.query("cursor"))
    return visit.page("tickets/list.html", tickets=tickets)


async def show_new(visit: Visit) -> Response:
    """Show the form of a new ticket. A form that is shown again is the same ticket when it is sent again."""
    return visit.page("tickets/new.html", request_id=_choose_request_id(visit))


async def open_ticket(visit: Visit) -> Response:
    """Open a ticket, or complete the one that this form began."""
    request_id = _read_request_id(visit)
    subject, message = visit.form.text("subject"), visit.form.raw("message")
    ticket = await visit.core.tickets.create(subject, message, request_id=request_id)
    return visit.redirect(f"{visit.tenant_path}/tickets/{ticket.id}", "tickets.opened")


async def show_ticket(visit: Visit) -> Response:
    """Show a ticket with its messages, and the form of a reply. A form that is shown again is the same reply."""
    ticket_id, request_id = visit.parameter("ticket_id"), _choose_request_id(visit)
    # The desk has just failed, and the messages are there.
    if visit.trouble is not None and visit.trouble.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return visit.page("tickets/reply.html", ticket_id=ticket_id, request_id=request_id)
    ticket = await visit.core.tickets.get(ticket_id)
    messages = [(each.author, each.created_at, each.body.translate(_UNPRINTABLE)) for each in ticket.messages]
    return visit.page("tickets/ticket.html", ticket=ticket, messages=messages, request_id=request_id)


async def reply(visit: Visit) -> Response:
    """Add a reply to a ticket, or complete the one that this form began."""
    ticket_id, request_id = visit.parameter("ticket_id"), _read_request_id(visit)
    ticket = await visit.core.tickets.reply(ticket_id, visit.form.raw("message"), request_id=request_id)
    return visit.redirect(f"{visit.tenant_path}/tickets/{ticket.id}", "tickets.replied")


def _read_request_id(visit: Visit) -> str:
    """Raises: FormMalformed."""
    request_id = visit.form.text("request_id")
    if _REQUEST_ID.fullmatch(request_id) is None:
        raise FormMalformed
    return request_id


def _choose_request_id(visit: Visit) -> str:
    typed = visit.form.text("request_id")
    if _REQUEST_ID.fullmatch(typed) is not None:
        return typed
    return f"supreq_{base64url.encode(visit.console.entropy.take(_KEY_BYTES))}"


_ALL: Final = "/organizations/{organization_id}/tickets"
routes: Final[list[Route]] = [
    page(_ALL, show_list),
    form_page(f"{_ALL}/new", show_new, open_ticket),
    form_page(f"{_ALL}/{{ticket_id}}", show_ticket, reply),
]
