"""Examples of support tickets."""

from datetime import timedelta
from typing import Final

from soundmark.core.domain.support.ticket import Ticket, TicketMessage
from soundmark.core.edge.examples import ISSUED_AT, MEMBER, ORGANIZATION
from soundmark.core.features.support.tickets.reading import ReadTicket

_QUESTION: Final = TicketMessage("customer", "Since this morning no phone hears it.\nWhat should we check?", ISSUED_AT)
_ANSWER: Final = TicketMessage("agent", "Is the loudspeaker's equaliser off?", ISSUED_AT + timedelta(minutes=20))
_REPLY: Final = TicketMessage("customer", "It is off.\nWhat else?", ISSUED_AT + timedelta(minutes=30))
TICKET: Final = Ticket(
    organization_id=ORGANIZATION.id,
    id="tkt_dGhlLWZlc3RpdmFscy1Db2",
    subject_id=MEMBER.subject_id,
    request_id="supreq_Zmlyc3QtdGlja2V0LW9m",
    subject="The festival's Code cannot be heard",
    status="active",
    sealed_message=None,
    conversation_id=1,
    mailbox_id=1,
    desk_updated_at=ISSUED_AT,
    attempts=1,
    post_after=ISSUED_AT,
    created_at=ISSUED_AT,
)
OPENED: Final = ReadTicket(TICKET, [_QUESTION])
ANSWERED: Final = ReadTicket(TICKET, [_QUESTION, _ANSWER])
REPLIED: Final = ReadTicket(TICKET, [_QUESTION, _ANSWER, _REPLY])
