"""Replying to a support ticket, as one thread of its conversation (docs/adr/0054); `turns` has the phases."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.support.reply import REPLY_PREFIX, TicketReply, add_reference
from soundmark.core.domain.support.ticket import CustomerMessage, Ticket
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.support.tickets.reading import ReadTicket, read_at_desk, read_conversation
from soundmark.core.features.support.tickets.turns import bring, make_deadline_s, report_failure, seal_message
from soundmark.core.problems import OrganizationNotFound, TicketNotFound
from soundmark.core.providers.freescout.client import DeskCallFailed
from soundmark.core.providers.freescout.server import DeskServer
from soundmark.core.steps import audit
from soundmark.core.steps.tenancy import hold_authority, require_open_organization
from soundmark.core.store.support import ticket_replies, tickets
from soundmark.core.store.tenancy import organizations
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint

COMPLETE_REPLY: Final = "complete_reply"  # The job that brings a reply to the desk.
_TABLE: Final = "ticket_replies"
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class NewReply:
    """The content of a reply as requested."""

    request_id: str
    message: str = field(repr=False)


async def reply_to_ticket(ctx: Context, scope: TenantScope, ticket_id: str, new: NewReply) -> ReadTicket:
    """Add a message to a ticket, as one thread of its conversation, and return the ticket with all its messages.

    A request that repeats a `request_id` of the same person for the same ticket is the same reply, whatever its
    message says, and completes it if it was cut short.

    Raises: TicketNotFound; ResourceDeletionInProgress; SupportUnavailable, after which the reply waits for the repeat
        or the job, also while the desk does not have the ticket.
    """
    deadline_s = make_deadline_s(ctx)
    ticket, reply, is_new = await _insert_or_find(ctx, scope, ticket_id, new)
    await _bring(ctx, ticket, reply.id, deadline_s=deadline_s)
    return await read_at_desk(ctx, ticket, deadline_s=deadline_s, is_new=is_new)


async def complete_reply(ctx: Context, organization_id: str, reply_id: str) -> None:
    """Bring a reply to the desk within ten seconds. Safe to repeat and concurrently.

    Raises: SupportUnavailable, which leaves the reply as it is; OrganizationNotFound if it was deleted.
    """
    deadline_s = make_deadline_s(ctx)
    async with ctx.db.snapshot(tenant=organization_id) as tx:
        reply = await ticket_replies.find(tx, organization_id, reply_id)
        ticket = None if reply is None else await tickets.find(tx, organization_id, reply.ticket_id)
    if ticket is None:
        raise OrganizationNotFound
    await _bring(ctx, ticket, reply_id, deadline_s=deadline_s)


async def _insert_or_find(
    ctx: Context, scope: TenantScope, ticket_id: str, new: NewReply
) -> tuple[Ticket, TicketReply, bool]:
    """Carry out phase 1; return the ticket, this request's reply, and whether it is new. Lock order: docs/locks.md."""
    organization_id = scope.organization_id
    async with ctx.db.transaction(tenant=organization_id) as tx:
        await hold_authority(tx, scope)
        is_open = await organizations.hold_open(tx, organization_id)
        ticket = await tickets.find(tx, organization_id, ticket_id)
        if ticket is None:
            raise TicketNotFound
        found = await _find(tx, scope, ticket_id, new)
        if found is not None:
            return ticket, found, False
        require_open_organization(is_open=is_open)
        reply = _make_reply(ctx, scope, ticket_id, new)
        if not await ticket_replies.insert_if_new(tx, reply):
            # The same request has just committed; this statement sees it.
            found = await _find(tx, scope, ticket_id, new)
            assert found is not None, "replies are deleted with their organisation, which is held"
            return ticket, found, False
        await _record(ctx, tx, scope, reply)
        return ticket, reply, True


async def _find(tx: Tx, scope: TenantScope, ticket_id: str, new: NewReply) -> TicketReply | None:
    return await ticket_replies.find_of_request(
        tx,
        scope.organization_id,
        ticket_id=ticket_id,
        subject_id=scope.user.subject_id,
        request_id=new.request_id,
    )


def _make_reply(ctx: Context, scope: TenantScope, ticket_id: str, new: NewReply) -> TicketReply:
    reply_id, now = mint(ctx.entropy, REPLY_PREFIX), ctx.clock.now()
    message = CustomerMessage(scope.user.email, new.message)
    return TicketReply(
        organization_id=scope.organization_id,
        id=reply_id,
        ticket_id=ticket_id,
        subject_id=scope.user.subject_id,
        request_id=new.request_id,
        sealed_message=seal_message(ctx.sealer, _TABLE, reply_id, message),
        thread_id=None,
        attempts=0,
        post_after=now,
        created_at=now,
    )


async def _record(ctx: Context, tx: Tx, scope: TenantScope, reply: TicketReply) -> None:
    organization_id, reply_id = reply.organization_id, reply.id
    await audit.record(
        tx, scope, ctx.entropy, "support.ticket_replied", now=reply.created_at, ticket_id=reply.ticket_id
    )
    await ctx.queue.defer(tx, COMPLETE_REPLY, lock=reply_id, organization_id=organization_id, reply_id=reply_id)


async def _bring(ctx: Context, ticket: Ticket, reply_id: str, *, deadline_s: float) -> None:
    if not ticket.is_at_desk():
        raise report_failure(DeskCallFailed("not_at_desk"))
    await bring(ctx, _ReplyErrand(ctx, ticket, reply_id), deadline_s=deadline_s)


class _ReplyErrand:
    """The errand of a reply: a thread, whose last line is the reply's id. Its place is the thread's id.

    Before anything is posted the conversation is read, because it must still be that of the ticket.
    """

    table: Final = _TABLE
    is_searched_first: Final = True

    def __init__(self, ctx: Context, ticket: Ticket, reply_id: str) -> None:
        self._ctx: Final = ctx
        self._ticket: Final = ticket
        self.organization_id: Final = ticket.organization_id
        self._reply_id: Final = reply_id

    async def lock(self, tx: Tx) -> TicketReply | None:
        return await ticket_replies.lock(tx, self.organization_id, self._reply_id)

    async def update_attempt(self, tx: Tx, row: TicketReply, *, post_after: datetime) -> TicketReply:
        return await ticket_replies.update_attempt(tx, row, post_after=post_after)

    async def update_post_after(self, tx: Tx, row: TicketReply, *, post_after: datetime) -> None:
        await ticket_replies.update_post_after(tx, row, post_after=post_after)

    async def search(self, server: DeskServer, row: TicketReply, *, timeout_s: float) -> int | None:
        detail = await read_conversation(self._ctx, server, self._ticket, timeout_s=timeout_s)
        thread_id = detail.reply_threads.get(row.id)
        if thread_id is not None:
            _log.info("reply_found_at_desk", ticket_id=row.ticket_id, reply_id=row.id)
        return thread_id

    async def post(self, server: DeskServer, row: TicketReply, message: CustomerMessage, *, timeout_s: float) -> int:
        assert self._ticket.conversation_id is not None, "a reply is posted once the desk has the ticket"
        referring = CustomerMessage(message.email, add_reference(message.text, row.id))
        conversation_id = self._ticket.conversation_id
        return await self._ctx.desk.create_thread(server, conversation_id, referring, timeout_s=timeout_s)

    async def store(self, tx: Tx, row: TicketReply, place: int) -> TicketReply:
        if row.is_at_desk():
            if row.thread_id != place:
                _log.error("reply_twice_at_desk", ticket_id=row.ticket_id, reply_id=row.id)
            return row
        await ticket_replies.update_at_desk(tx, row.organization_id, row.id, thread_id=place)
        return replace(row, thread_id=place, sealed_message=None)
