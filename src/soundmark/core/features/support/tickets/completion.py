"""Bringing a ticket to the support desk, as one conversation, whatever is lost (docs/adr/0025).

1. Insert the ticket with its sealed message, in one transaction: `service.create_ticket`.
2. Search the desk for the ticket's reference, and post the message if it is not there, with nothing locked. Only one
   attempt at a time may post, and none while the desk may still be working on an earlier post. Anybody may search.
3. Store where the desk has it, and destroy the message, in one transaction.

A process may die anywhere. Then the ticket is pending until the same request or a job resumes at phase 2.
"""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec
import structlog

from soundmark.core.context import Context
from soundmark.core.domain.support.ticket import (
    ATTEMPT_MAX,
    LEASE,
    SETTLING,
    CustomerMessage,
    Ticket,
    TicketStatus,
    status_of,
)
from soundmark.core.problems import OrganizationNotFound, SupportUnavailable
from soundmark.core.providers.freescout.client import DeskCallFailed
from soundmark.core.providers.freescout.server import DeskServer, find_desk_server
from soundmark.core.steps.tickets import announce_status
from soundmark.core.store.support import desk_conversations, tickets
from soundmark.core.store.support.desk_conversations import TicketPlace
from soundmark.kit.crypto.sealing import Sealer
from soundmark.settings.registry import SupportSettings

_PAUSE_S: Final = 0.1
_PAUSE_MAX_S: Final = 1.0
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CompletedTicket:
    """A ticket that the desk has. `message` is what this attempt brought there; None if it was there before."""

    ticket: Ticket
    message: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Turn:
    """What an attempt may do. One that may post began at `began_at`."""

    ticket: Ticket
    may_post: bool
    began_at: datetime


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the desk has the ticket, and the status it has there."""

    conversation_id: int
    mailbox_id: int
    status: TicketStatus


async def complete(ctx: Context, organization_id: str, ticket_id: str) -> CompletedTicket:
    """Carry out phases 2 and 3 within ten seconds. Safe to repeat and concurrently: attempts take turns to post.

    Raises: SupportUnavailable, which leaves the ticket as it is; OrganizationNotFound if it was deleted.
    """
    deadline_s = ctx.clock.monotonic_s() + ATTEMPT_MAX.total_seconds()
    server = await find_desk(ctx)
    pause_s = _PAUSE_S
    while True:
        turn = await _take_turn(ctx, organization_id, ticket_id)
        if turn.ticket.is_at_desk():
            return CompletedTicket(turn.ticket, None)
        message = unseal_message(ctx.sealer, turn.ticket)
        try:
            place = await _search_or_post(ctx, server, turn, message, deadline_s)
        except DeskCallFailed as failed:
            await _end_turn(ctx, turn, failed.settles_in)
            raise report_failure(failed) from None
        if place is not None:
            return CompletedTicket(await _store(ctx, turn, place), message.text)
        if ctx.clock.monotonic_s() + pause_s >= deadline_s:
            raise report_failure(DeskCallFailed("settling"))
        # Another attempt is at it, or the desk is: what either did is found soon.
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, _PAUSE_MAX_S)


async def find_desk(ctx: Context) -> DeskServer:
    """Return the support desk from the platform settings.

    Raises: SupportUnavailable if it is not configured.
    """
    server = find_desk_server(await ctx.platform_settings.read(SupportSettings))
    if server is None:
        raise report_failure(DeskCallFailed("not_configured"))
    return server


def report_failure(failed: DeskCallFailed) -> SupportUnavailable:
    """Log why the desk failed, in our own words, and return the problem to raise."""
    _log.warning("desk_call_failed", reason=failed.reason, status=failed.status)
    return SupportUnavailable()


def seal_message(sealer: Sealer, ticket_id: str, message: CustomerMessage) -> bytes:
    """Return the envelope of a message, which opens only in the row of its ticket."""
    return sealer.seal(msgspec.json.encode(message), table="tickets", column="sealed_message", row=ticket_id)


def unseal_message(sealer: Sealer, ticket: Ticket) -> CustomerMessage:
    """Return the message of a ticket that the desk does not have.

    Raises: kit.crypto.sealing.SealBroken.
    """
    assert ticket.sealed_message is not None, "a message is kept until the desk has it"
    opened = sealer.unseal(ticket.sealed_message, table="tickets", column="sealed_message", row=ticket.id)
    return msgspec.json.decode(opened, type=CustomerMessage)


async def _take_turn(ctx: Context, organization_id: str, ticket_id: str) -> _Turn:
    """Begin an attempt if none may be posting. The row says so until the desk has certainly ended its work."""
    async with ctx.db.transaction(tenant=organization_id) as tx:
        ticket = await tickets.lock(tx, organization_id, ticket_id)
        if ticket is None:
            raise OrganizationNotFound
        now = ctx.clock.now()
        if ticket.is_at_desk() or not ticket.may_post_at(now):
            return _Turn(ticket, may_post=False, began_at=now)
        begun = await tickets.update_attempt(tx, ticket, post_after=now + LEASE)
        return _Turn(begun, may_post=True, began_at=now)


async def _search_or_post(
    ctx: Context, server: DeskServer, turn: _Turn, message: CustomerMessage, deadline_s: float
) -> _Place | None:
    """Carry out phase 2; return None if the desk does not have the ticket, and this attempt may not post it.

    Raises: DeskCallFailed.
    """
    ticket = turn.ticket
    if not turn.may_post or ticket.attempts > 1:
        timeout_s = deadline_s - ctx.clock.monotonic_s()
        found = await _search(ctx, server, ticket, timeout_s)
        if found is not None or not turn.may_post:
            return found
    # Such as after the machine was suspended: by now somebody else may be posting.
    if ctx.clock.now() - turn.began_at > ATTEMPT_MAX:
        raise DeskCallFailed("overtaken", settles_in=SETTLING)
    timeout_s = deadline_s - ctx.clock.monotonic_s()
    conversation_id = await ctx.desk.create_conversation(server, ticket.desk_subject, message, timeout_s=timeout_s)
    return _Place(conversation_id, server.mailbox_id, "active")


async def _search(ctx: Context, server: DeskServer, ticket: Ticket, timeout_s: float) -> _Place | None:
    """Return where an earlier attempt has brought the ticket.

    Raises: DeskCallFailed, which says nothing about a post.
    """
    try:
        found = await ctx.desk.find_conversation(server, ticket.id, timeout_s=timeout_s)
    except DeskCallFailed as failed:
        raise DeskCallFailed(failed.reason, failed.status) from None
    if found is None:
        return None
    _log.info("ticket_found_at_desk", ticket_id=ticket.id)
    return _Place(found.id, found.mailbox_id, status_of(found.status) or "active")


async def _end_turn(ctx: Context, turn: _Turn, settles_in: timedelta) -> None:
    """Let the next attempt post once the desk has ended what this one may have begun."""
    if not turn.may_post:
        return
    async with ctx.db.transaction(tenant=turn.ticket.organization_id) as tx:
        await tickets.update_post_after(tx, turn.ticket, post_after=ctx.clock.now() + settles_in)


async def _store(ctx: Context, turn: _Turn, place: _Place) -> Ticket:
    """Carry out phase 3, unless another attempt has."""
    organization_id, ticket_id = turn.ticket.organization_id, turn.ticket.id
    async with ctx.db.transaction(tenant=organization_id) as tx:
        ticket = await tickets.lock(tx, organization_id, ticket_id)
        if ticket is None:
            raise OrganizationNotFound
        if ticket.is_at_desk():
            if ticket.conversation_id != place.conversation_id:
                _log.error("ticket_twice_at_desk", ticket_id=ticket_id)
            return ticket
        # A webhook may have come first.
        status = place.status if ticket.desk_updated_at is None else ticket.status
        await tickets.update_at_desk(
            tx,
            organization_id,
            ticket_id,
            conversation_id=place.conversation_id,
            mailbox_id=place.mailbox_id,
            status=status,
        )
        await desk_conversations.insert_or_update(tx, place.conversation_id, TicketPlace(organization_id, ticket_id))
        if ticket.attempts > 1 and status != ticket.status:
            # The first attempt failed, so people have seen it as pending.
            await announce_status(tx, ticket, ctx.entropy, status=status, now=ctx.clock.now())
        return replace(
            ticket,
            conversation_id=place.conversation_id,
            mailbox_id=place.mailbox_id,
            status=status,
            sealed_message=None,
        )
