"""The request and response shapes of support tickets."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field, StringConstraints, WithJsonSchema

from soundmark.core.domain.support.ticket import MessageAuthor, TicketStatus
from soundmark.core.features.support.tickets.reading import ReadTicket
from soundmark.core.features.support.tickets.replies import NewReply
from soundmark.core.features.support.tickets.service import NewTicket
from soundmark.wire.shape import NO_CONTROL_CHARS, Timestamp, Wire

_SUBJECT_CHARS_MAX: Final = 200
_MESSAGE_CHARS_MAX: Final = 10_000
_INNER: Final = r"\x00-\x1f\x7f"

_REQUEST_ID: Final = StringConstraints(pattern=r"^supreq_[A-Za-z0-9_-]{16,64}$")
_RequestId = Annotated[
    str,
    _REQUEST_ID,
    Field(description="Chosen by the caller. A repeated request with the same id opens no second ticket."),
]
_ReplyRequestId = Annotated[
    str,
    _REQUEST_ID,
    Field(description="Chosen by the caller. A repeated request with the same id adds no second reply to the ticket."),
]
_Subject = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=_SUBJECT_CHARS_MAX, pattern=NO_CONTROL_CHARS),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": rf"^\s*[^{_INNER}\s]([^{_INNER}]{{0,{_SUBJECT_CHARS_MAX - 2}}}[^{_INNER}\s])?\s*$",
            "description": f"1 to {_SUBJECT_CHARS_MAX} characters, no control characters. Surrounding spaces are "
            "removed.",
        }
    ),
]
_Message = Annotated[
    str,
    StringConstraints(min_length=1, max_length=_MESSAGE_CHARS_MAX),
    Field(description="Plain text.", repr=False),
]


class CreateTicket(Wire):
    """A new support ticket."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "request_id": "supreq_Zmlyc3QtdGlja2V0LW9m",
                    "subject": "The festival's Code cannot be heard",
                    "message": "Since this morning no phone hears it.\nWhat should we check?",
                }
            ]
        }
    )

    request_id: _RequestId
    subject: _Subject
    message: _Message


class ReplyToTicket(Wire):
    """A message for a support ticket."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"request_id": "supreq_Zmlyc3QtcmVwbHktb2Yt", "message": "It is off.\nWhat else?"}]
        }
    )

    request_id: _ReplyRequestId
    message: _Message


class TicketMessageView(Wire):
    """A message of a ticket, as plain text."""

    author: Annotated[
        MessageAuthor, Field(description="`customer`: a member of the organisation; `agent`: the support desk.")
    ]
    body: str
    created_at: Timestamp


class ListedTicketView(Wire):
    """A support ticket without its messages."""

    id: str
    request_id: str
    subject: str
    status: Annotated[
        TicketStatus,
        Field(description="The status at the desk. It is also `pending` until the desk has the ticket."),
    ]
    created_at: Timestamp


class TicketView(ListedTicketView):
    """A support ticket with its messages, oldest first."""

    messages: list[TicketMessageView]


class TicketPage(Wire):
    """Support tickets, newest first."""

    data: list[ListedTicketView]
    next_cursor: str | None


def new_ticket(body: CreateTicket) -> NewTicket:
    """Return the arguments of the command from its body."""
    return NewTicket(body.request_id, body.subject, body.message)


def new_reply(body: ReplyToTicket) -> NewReply:
    """Return the arguments of the command from its body."""
    return NewReply(body.request_id, body.message)


def ticket_view(read: ReadTicket) -> TicketView:
    """Return the view of a ticket with its messages."""
    messages = [TicketMessageView.from_record(message) for message in read.messages]
    return TicketView.from_record(read.ticket, messages=messages)
