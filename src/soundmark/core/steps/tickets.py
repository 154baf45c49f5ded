"""Taking the status of a ticket from the support desk."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from soundmark.core.domain.support.ticket import Ticket, TicketStatus
from soundmark.core.domain.tenancy.scope import Actor
from soundmark.core.steps.webhooks import announce
from soundmark.core.store.support import tickets
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.postgres.transaction import Tx

_DESK: Final = Actor("system", "soundmark")  # Contract, section 9: what nobody did.


async def take_status(
    tx: Tx, ticket: Ticket, entropy: Entropy, *, status: TicketStatus, desk_updated_at: datetime, now: datetime
) -> Ticket | None:
    """Give a locked ticket the desk's status, and announce it if it is another one.

    Return the ticket; None if a later status was taken already, which stays.

    Source: API v1, "Support ticket states"; contract, section 7, "Support".
    """
    if ticket.desk_updated_at is not None and desk_updated_at < ticket.desk_updated_at:
        return None
    await tickets.update_status(tx, ticket.organization_id, ticket.id, status=status, desk_updated_at=desk_updated_at)
    if status != ticket.status:
        await announce_status(tx, ticket, entropy, status=status, now=now)
    return replace(ticket, status=status, desk_updated_at=desk_updated_at)


async def announce_status(tx: Tx, ticket: Ticket, entropy: Entropy, *, status: TicketStatus, now: datetime) -> None:
    """Announce the new status of a ticket to the organisation's webhook endpoints."""
    await announce(
        tx,
        ticket.organization_id,
        entropy,
        type="support.ticket_status_changed",
        actor=_DESK,
        data={"ticket_id": ticket.id, "status": status},
        now=now,
    )
