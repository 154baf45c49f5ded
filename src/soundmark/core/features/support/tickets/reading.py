"""Reading a ticket at the support desk, where its messages are."""

from dataclasses import dataclass, field
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.support.ticket import Ticket, TicketMessage, names_ticket, status_of
from soundmark.core.features.support.tickets.turns import find_desk, report_failure
from soundmark.core.problems import TicketNotFound
from soundmark.core.providers.freescout.client import DeskCallFailed
from soundmark.core.providers.freescout.server import DeskServer
from soundmark.core.providers.freescout.shapes import DeskDetail
from soundmark.core.steps.tickets import take_status
from soundmark.core.store.support import tickets

_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ReadTicket:
    """A ticket with the messages that the customer may see.

    `is_new` says whether this request has made the ticket or, if it is a reply, the reply.
    """

    ticket: Ticket
    messages: list[TicketMessage] = field(repr=False)
    is_new: bool = False


async def read_at_desk(ctx: Context, ticket: Ticket, *, deadline_s: float, is_new: bool = False) -> ReadTicket:
    """Return a ticket with its messages from the desk, and take its status from there.

    Raises: SupportUnavailable, also if the desk does not have the ticket, or has another conversation in its place;
        TicketNotFound if it was deleted.
    """
    server = await find_desk(ctx)
    try:
        detail = await read_conversation(ctx, server, ticket, timeout_s=deadline_s - ctx.clock.monotonic_s())
    except DeskCallFailed as failed:
        raise report_failure(failed) from None
    status = status_of(detail.conversation.status)
    if status is None:
        raise report_failure(DeskCallFailed("unknown_status"))
    async with ctx.db.transaction(tenant=ticket.organization_id) as tx:
        locked = await tickets.lock(tx, ticket.organization_id, ticket.id)
        if locked is None:
            raise TicketNotFound
        taken = await take_status(
            tx,
            locked,
            ctx.entropy,
            status=status,
            desk_updated_at=detail.conversation.updated_at,
            now=ctx.clock.now(),
        )
    return ReadTicket(taken or locked, detail.messages, is_new)


async def read_conversation(ctx: Context, server: DeskServer, ticket: Ticket, *, timeout_s: float) -> DeskDetail:
    """Return the conversation of a ticket, which is still the one that was made for it.

    Raises: DeskCallFailed, also if the desk does not have the ticket, or has another conversation in its place.
    """
    if ticket.conversation_id is None:
        raise DeskCallFailed("not_at_desk")
    detail = await ctx.desk.get_conversation(server, ticket.conversation_id, timeout_s=timeout_s)
    conversation = detail.conversation
    is_same = (conversation.id, conversation.mailbox_id) == (ticket.conversation_id, ticket.mailbox_id)
    if not is_same or not names_ticket(conversation.subject, ticket.id):
        _log.error("ticket_changed_at_desk", ticket_id=ticket.id)
        raise DeskCallFailed("another_conversation")
    return detail
