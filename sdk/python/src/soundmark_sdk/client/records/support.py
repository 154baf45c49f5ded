"""Support tickets."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from soundmark_sdk.client.records.record import Record


@dataclass(frozen=True, slots=True)
class ListedTicket(Record):
    """A support ticket without its messages; `pending` also as long as the support desk does not have it."""

    id: str
    request_id: str
    subject: str
    status: Literal["active", "pending", "closed"]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TicketMessage(Record):
    """A message of a ticket, as plain text."""

    author: Literal["customer", "agent"]
    body: str = field(repr=False)
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Ticket(ListedTicket):
    """A support ticket with its messages, oldest first."""

    messages: tuple[TicketMessage, ...] = field(repr=False)
