"""Genuine examples of support tickets."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from soundmark.core.domain.support.ticket import Ticket, TicketMessage
from soundmark.core.features.support.desk_webhook.wire import DeskAnswer
from soundmark.core.features.support.tickets.service import ReadTicket
from soundmark.core.features.support.tickets.wire import TicketPage, listed_ticket_view, ticket_view

_AT: Final = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
_QUESTION: Final = TicketMessage("customer", "Since this morning no phone hears it.\nWhat should we check?", _AT)
_ANSWER: Final = TicketMessage("agent", "Is the loudspeaker's equaliser off?", _AT + timedelta(minutes=20))


def example_tickets(organization_id: str) -> dict[str, Any]:
    """Return the example responses by operation."""
    ticket = Ticket(
        organization_id=organization_id,
        id="tkt_dGhlLWZlc3RpdmFscy1Db2",
        subject_id="6f1c3f0e-5d0b-4c1e-9a57-2f6e0c1d7b42",
        request_id="supreq_Zmlyc3QtdGlja2V0LW9m",
        subject="The festival's Code cannot be heard",
        status="active",
        sealed_message=None,
        conversation_id=1,
        mailbox_id=1,
        desk_updated_at=_AT,
        attempts=1,
        post_after=_AT,
        created_at=_AT,
    )
    return {
        "create_ticket": ticket_view(ReadTicket(ticket, [_QUESTION])),
        "list_tickets": TicketPage(data=[listed_ticket_view(ticket)], next_cursor=None),
        "get_ticket": ticket_view(ReadTicket(ticket, [_QUESTION, _ANSWER])),
        "receive_desk_delivery": DeskAnswer(status="processed"),
    }
