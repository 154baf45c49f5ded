"""The routes of support tickets."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path, Response

from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, Tenant
from soundmark.core.features.support.tickets import example, replies, service
from soundmark.core.features.support.tickets.wire import (
    CreateTicket,
    ListedTicketView,
    ReplyToTicket,
    TicketPage,
    TicketView,
    new_reply,
    new_ticket,
    ticket_view,
)
from soundmark.core.problems import ResourceDeletionInProgress, SupportUnavailable, TicketNotFound
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor

operations = Operations("Support")

TicketIdPath = Annotated[ResourceId, Path(description="The ticket's id.", examples=["tkt_dGhlLWZlc3RpdmFscy1Db2"])]


@operations.add(
    "POST",
    "/v1/support/tickets",
    Operation("ticket.create", problems=(ResourceDeletionInProgress, SupportUnavailable)),
    status=HTTPStatus.CREATED,
    responses={
        HTTPStatus.OK: {
            "model": TicketView,
            "description": "A repeated request: the ticket that the first request opened.",
        }
    },
    example=ticket_view(example.OPENED),
)
async def create_ticket(ctx: Ctx, scope: Tenant, body: CreateTicket, response: Response) -> TicketView:
    """Open a support ticket.

    A repeated `request_id` of the same person in the same organisation returns the same ticket with 200, and completes
    it if the first request was interrupted. After a 503, the ticket exists and is pending: send the same request again,
    or let Core pass the ticket on.
    """
    opened = await service.create_ticket(ctx, scope, new_ticket(body))
    if not opened.is_new:
        response.status_code = HTTPStatus.OK
    return ticket_view(opened)


@operations.add(
    "GET",
    "/v1/support/tickets",
    Operation("ticket.list", problems=(InvalidCursor,)),
    example=TicketPage(data=[ListedTicketView.from_record(example.TICKET)], next_cursor=None),
)
async def list_tickets(ctx: Ctx, scope: Tenant, limit: Limit = LIMIT_DEFAULT, cursor: CursorText = None) -> TicketPage:
    """List the organisation's support tickets, newest first, with the last status that Core has received."""
    cursors = ctx.cursors.bind("tickets", organization_id=scope.organization_id)
    page = await service.list_tickets(ctx, scope, before=cursors.read(cursor), limit=limit)
    return cursors.show(TicketPage, page, ListedTicketView.from_record)


@operations.add(
    "GET",
    "/v1/support/tickets/{ticket_id}",
    Operation("ticket.read", problems=(TicketNotFound, SupportUnavailable)),
    example=ticket_view(example.ANSWERED),
)
async def get_ticket(ctx: Ctx, scope: Tenant, ticket_id: TicketIdPath) -> TicketView:
    """Return a support ticket with its messages and its current status from the support desk."""
    return ticket_view(await service.get_ticket(ctx, scope, ticket_id))


@operations.add(
    "POST",
    "/v1/support/tickets/{ticket_id}/messages",
    Operation("ticket.reply", problems=(TicketNotFound, ResourceDeletionInProgress, SupportUnavailable)),
    status=HTTPStatus.CREATED,
    responses={
        HTTPStatus.OK: {
            "model": TicketView,
            "description": "A repeated request: the ticket with the reply that the first request added.",
        }
    },
    example=ticket_view(example.REPLIED),
)
async def reply_to_ticket(
    ctx: Ctx, scope: Tenant, ticket_id: TicketIdPath, body: ReplyToTicket, response: Response
) -> TicketView:
    """Add a message to a support ticket, which reopens a closed one, and return the ticket with all its messages.

    If the same person repeats a `request_id` for the same ticket, nothing is added, even with another message. The
    response is 200, and completes the reply if the first request was interrupted. After a 503, the reply exists, but
    the support desk may not have it yet: send the same request again, or let Core pass the reply on.
    """
    replied = await replies.reply_to_ticket(ctx, scope, ticket_id, new_reply(body))
    if not replied.is_new:
        response.status_code = HTTPStatus.OK
    return ticket_view(replied)
