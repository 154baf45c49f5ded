"""Bringing a ticket to the support desk, as one conversation (docs/adr/0025); `turns` has the phases."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.support.ticket import CustomerMessage, Ticket, TicketStatus, status_of
from soundmark.core.features.support.tickets.turns import Brought, bring, make_deadline_s
from soundmark.core.providers.freescout.server import DeskServer
from soundmark.core.steps.tickets import announce_status
from soundmark.core.store.support import desk_conversations, tickets
from soundmark.core.store.support.desk_conversations import TicketPlace
from soundmark.kit.postgres.transaction import Tx

TABLE: Final = "tickets"
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the desk has the ticket, and the status it has there."""

    conversation_id: int
    mailbox_id: int
    status: TicketStatus


async def complete(ctx: Context, organization_id: str, ticket_id: str) -> Brought[Ticket]:
    """Bring a ticket to the desk within ten seconds. Safe to repeat and concurrently.

    Raises: SupportUnavailable, which leaves the ticket as it is; OrganizationNotFound if it was deleted.
    """
    return await bring(ctx, _TicketErrand(ctx, organization_id, ticket_id), deadline_s=make_deadline_s(ctx))


class _TicketErrand:
    """The errand of a ticket: a conversation, whose subject has the ticket's id at its end."""

    table: Final = TABLE
    is_searched_first: Final = False

    def __init__(self, ctx: Context, organization_id: str, ticket_id: str) -> None:
        self._ctx: Final = ctx
        self.organization_id: Final = organization_id
        self._ticket_id: Final = ticket_id

    async def lock(self, tx: Tx) -> Ticket | None:
        return await tickets.lock(tx, self.organization_id, self._ticket_id)

    async def update_attempt(self, tx: Tx, row: Ticket, *, post_after: datetime) -> Ticket:
        return await tickets.update_attempt(tx, row, post_after=post_after)

    async def update_post_after(self, tx: Tx, row: Ticket, *, post_after: datetime) -> None:
        await tickets.update_post_after(tx, row, post_after=post_after)

    async def search(self, server: DeskServer, row: Ticket, *, timeout_s: float) -> _Place | None:
        found = await self._ctx.desk.find_conversation(server, row.id, timeout_s=timeout_s)
        if found is None:
            return None
        _log.info("ticket_found_at_desk", ticket_id=row.id)
        return _Place(found.id, found.mailbox_id, status_of(found.status) or "active")

    async def post(self, server: DeskServer, row: Ticket, message: CustomerMessage, *, timeout_s: float) -> _Place:
        desk = self._ctx.desk
        conversation_id = await desk.create_conversation(server, row.desk_subject, message, timeout_s=timeout_s)
        return _Place(conversation_id, server.mailbox_id, "active")

    async def store(self, tx: Tx, row: Ticket, place: _Place) -> Ticket:
        if row.is_at_desk():
            if row.conversation_id != place.conversation_id:
                _log.error("ticket_twice_at_desk", ticket_id=row.id)
            return row
        # A webhook may have come first.
        status = place.status if row.desk_updated_at is None else row.status
        await tickets.update_at_desk(
            tx,
            row.organization_id,
            row.id,
            conversation_id=place.conversation_id,
            mailbox_id=place.mailbox_id,
            status=status,
        )
        await desk_conversations.insert_or_update(tx, place.conversation_id, TicketPlace(row.organization_id, row.id))
        if row.attempts > 1 and status != row.status:
            # The first attempt failed, so people have seen it as pending.
            await announce_status(tx, row, self._ctx.entropy, status=status, now=self._ctx.clock.now())
        return replace(
            row,
            conversation_id=place.conversation_id,
            mailbox_id=place.mailbox_id,
            status=status,
            sealed_message=None,
        )
