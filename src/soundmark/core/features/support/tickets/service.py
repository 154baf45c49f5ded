"""Opening, listing and reading support tickets."""

from dataclasses import dataclass, field
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.support.ticket import TICKET_PREFIX, CustomerMessage, Ticket, TicketMessage
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.support.tickets.completion import TABLE, complete
from soundmark.core.features.support.tickets.reading import ReadTicket, read_at_desk
from soundmark.core.features.support.tickets.turns import make_deadline_s, seal_message
from soundmark.core.problems import TicketNotFound
from soundmark.core.steps import audit
from soundmark.core.steps.tenancy import hold_authority, require_open_organization
from soundmark.core.store.support import tickets
from soundmark.core.store.tenancy import organizations
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint
from soundmark.kit.text.paging import Page, Position, cut_page

COMPLETE: Final = "complete_ticket"  # The job that brings a ticket to the desk.


@dataclass(frozen=True, slots=True)
class NewTicket:
    """The content of a ticket as requested."""

    request_id: str
    subject: str
    message: str = field(repr=False)


async def create_ticket(ctx: Context, scope: TenantScope, new: NewTicket) -> ReadTicket:
    """Open a ticket, as one conversation at the support desk; `turns` has the phases.

    A request that repeats a `request_id` of the same person in the same organisation gets the same ticket, whatever
    else it says, and completes it if it was cut short.

    Raises: ResourceDeletionInProgress; SupportUnavailable, which leaves the ticket pending.
    Source: API v1, "Support"; contract, section 7, "Support".
    """
    ticket, is_new = await _insert_or_find(ctx, scope, new)
    completed = await complete(ctx, scope.organization_id, ticket.id)
    if completed.message is None:
        return await read_at_desk(ctx, completed.row, deadline_s=make_deadline_s(ctx))
    message = TicketMessage("customer", completed.message.text, completed.row.created_at)
    return ReadTicket(completed.row, [message], is_new)


async def list_tickets(ctx: Context, scope: TenantScope, *, before: Position | None, limit: int) -> Page[Ticket]:
    """Return the organisation's tickets as they are known here, newest first."""
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        rows = await tickets.list_newest_first(tx, scope.organization_id, before=before, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(row.created_at, row.id))


async def get_ticket(ctx: Context, scope: TenantScope, ticket_id: str) -> ReadTicket:
    """Return a ticket with its messages from the desk, and take its status from there.

    Raises: TicketNotFound; SupportUnavailable, also if the desk does not have the ticket, or if what it has in its
        place is another conversation.
    Source: API v1, "Support"; contract, section 7, "Support".
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        ticket = await tickets.find(tx, scope.organization_id, ticket_id)
    if ticket is None:
        raise TicketNotFound
    return await read_at_desk(ctx, ticket, deadline_s=make_deadline_s(ctx))


async def _insert_or_find(ctx: Context, scope: TenantScope, new: NewTicket) -> tuple[Ticket, bool]:
    """Carry out phase 1; return the ticket of this request, and whether it is new. Lock order: docs/locks.md."""
    organization_id, user = scope.organization_id, scope.user
    async with ctx.db.transaction(tenant=organization_id) as tx:
        await hold_authority(tx, scope)
        is_open = await organizations.hold_open(tx, organization_id)
        found = await tickets.find_of_request(
            tx, organization_id, subject_id=user.subject_id, request_id=new.request_id
        )
        if found is not None:
            return found, False
        require_open_organization(is_open=is_open)
        ticket = _make_ticket(ctx, scope, new)
        if not await tickets.insert_if_new(tx, ticket):
            # The same request has just committed; this statement sees it.
            found = await tickets.find_of_request(
                tx, organization_id, subject_id=user.subject_id, request_id=new.request_id
            )
            assert found is not None, "tickets are deleted with their organisation, which is held"
            return found, False
        await _record(ctx, tx, scope, ticket)
        return ticket, True


def _make_ticket(ctx: Context, scope: TenantScope, new: NewTicket) -> Ticket:
    ticket_id, now = mint(ctx.entropy, TICKET_PREFIX), ctx.clock.now()
    message = CustomerMessage(scope.user.email, new.message)
    return Ticket(
        organization_id=scope.organization_id,
        id=ticket_id,
        subject_id=scope.user.subject_id,
        request_id=new.request_id,
        subject=new.subject,
        status="pending",
        sealed_message=seal_message(ctx.sealer, TABLE, ticket_id, message),
        conversation_id=None,
        mailbox_id=None,
        desk_updated_at=None,
        attempts=0,
        post_after=now,
        created_at=now,
    )


async def _record(ctx: Context, tx: Tx, scope: TenantScope, ticket: Ticket) -> None:
    await audit.record(tx, scope, ctx.entropy, "support.ticket_created", now=ticket.created_at, ticket_id=ticket.id)
    await ctx.queue.defer(tx, COMPLETE, lock=ticket.id, organization_id=ticket.organization_id, ticket_id=ticket.id)
