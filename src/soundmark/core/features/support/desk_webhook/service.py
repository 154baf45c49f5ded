"""Taking the status of tickets from what the support desk delivers."""

from datetime import timedelta
from typing import Final, Literal, TypeAlias

from soundmark.core.context import Context
from soundmark.core.domain.support.ticket import Ticket, status_of
from soundmark.core.providers.freescout.webhooks import DeskNotice
from soundmark.core.steps.tickets import take_status
from soundmark.core.store.support import desk_conversations, desk_deliveries, tickets
from soundmark.core.store.support.desk_conversations import TicketPlace
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import parse_id

DeskOutcome: TypeAlias = Literal["processed", "duplicate", "ignored"]

_KEPT: Final = timedelta(days=30)  # The desk repeats a delivery for some hours.


async def receive_notice(ctx: Context, notice: DeskNotice, *, delivery_digest: bytes) -> DeskOutcome:
    """Take the status of a ticket from a verified delivery; `duplicate` if it was taken before.

    Safe to repeat, in any order and concurrently. What is about no ticket of ours is ignored without a record, so it
    is judged again if it is delivered again.

    Raises: DatabaseUnavailable.
    Source: API v1, "Support"; contract, section 7, "Support".
    """
    status = status_of(notice.status)
    place = await _find_place(ctx, notice)
    if status is None or place is None:
        return "ignored"
    async with ctx.db.transaction(tenant=place.organization_id) as tx:
        ticket = await tickets.lock(tx, place.organization_id, place.ticket_id)
        if ticket is None or not _is_about(notice, ticket):
            return "ignored"
        now = ctx.clock.now()
        if not await desk_deliveries.insert_if_new(tx, delivery_digest, now=now):
            return "duplicate"
        taken = await take_status(tx, ticket, ctx.entropy, status=status, desk_updated_at=notice.updated_at, now=now)
    return "processed" if taken is not None else "ignored"


async def forget_deliveries(ctx: Context) -> int:
    """Delete the deliveries of more than 30 days ago; return their number. Safe at any time and repeatedly.

    Raises: DatabaseUnavailable.
    """
    async with ctx.db.transaction() as tx:
        return await desk_deliveries.delete_before(tx, received_at=ctx.clock.now() - _KEPT)


async def _find_place(ctx: Context, notice: DeskNotice) -> TicketPlace | None:
    """Return where the ticket of a delivery is: by its conversation, or by the id that the desk was given."""
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        place = await desk_conversations.find(tx, notice.conversation_id)
        return place if place is not None else await _find_named(tx, notice)


async def _find_named(tx: Tx, notice: DeskNotice) -> TicketPlace | None:
    """Return the ticket that a delivery names, whose conversation may not be known yet."""
    if notice.ticket_id is None:
        return None
    ticket_id = parse_id(notice.ticket_id)
    organization_id = await tickets.find_organization_id(tx, ticket_id)
    return None if organization_id is None else TicketPlace(organization_id, ticket_id)


def _is_about(notice: DeskNotice, ticket: Ticket) -> bool:
    """Return whether a delivery is about a locked ticket: its conversation, or none that is known, and no other id."""
    if ticket.conversation_id not in {None, notice.conversation_id}:
        return False
    return notice.ticket_id in {None, ticket.id}
