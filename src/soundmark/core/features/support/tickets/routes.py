"""The routes of support tickets."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path, Response

from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, ResourceId, Tenant
from soundmark.core.features.support.tickets import example, service
from soundmark.core.features.support.tickets.wire import (
    CreateTicket,
    ListedTicketView,
    TicketPage,
    TicketView,
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
    responses={HTTPStatus.OK: {"model": TicketView, "description": "A repeated request: the ticket that it opened."}},
    example=ticket_view(example.OPENED),
)
async def create_ticket(ctx: Ctx, scope: Tenant, body: CreateTicket, response: Response) -> TicketView:
    """Open a support ticket.

    A repeated `request_id` of the same person in the same organisation returns the same ticket with 200, and completes
    it if it was cut short. After 503 the ticket is there and pending: send the same request again, or leave it to us.
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
    """List the organisation's support tickets, newest first, as they are known here."""
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
    """Return a support ticket with its messages from the support desk, and its present status there."""
    return ticket_view(await service.get_ticket(ctx, scope, ticket_id))
