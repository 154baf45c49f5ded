"""The pages of support tickets."""

import re
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
    typed = visit.form.text("request_id")
    request_id = typed if _REQUEST_ID.fullmatch(typed) else _make_request_id(visit)
    return visit.page("tickets/new.html", request_id=request_id)


async def open_ticket(visit: Visit) -> Response:
    """Open a ticket, or complete the one that this form began."""
    request_id = visit.form.text("request_id")
    if _REQUEST_ID.fullmatch(request_id) is None:
        raise FormMalformed
    ticket = await visit.core.tickets.create(
        visit.form.text("subject"), visit.form.raw("message"), request_id=request_id
    )
    return visit.redirect(f"{visit.tenant_path}/tickets/{ticket.id}", "tickets.opened")


async def show_ticket(visit: Visit) -> Response:
    """Show a ticket with its messages."""
    ticket_id = visit.parameter("ticket_id")
    ticket = await visit.core.tickets.get(ticket_id)
    messages = [(each.author, each.created_at, each.body.translate(_UNPRINTABLE)) for each in ticket.messages]
    return visit.page("tickets/ticket.html", ticket=ticket, messages=messages)


def _make_request_id(visit: Visit) -> str:
    return f"supreq_{base64url.encode(visit.console.entropy.take(_KEY_BYTES))}"


_ALL: Final = "/organizations/{organization_id}/tickets"
routes: Final[list[Route]] = [
    page(_ALL, show_list),
    form_page(f"{_ALL}/new", show_new, open_ticket),
    page(f"{_ALL}/{{ticket_id}}", show_ticket),
]
