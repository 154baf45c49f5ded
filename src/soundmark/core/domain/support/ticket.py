"""Support tickets, and how each becomes exactly one conversation of the support desk."""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

TicketStatus: TypeAlias = Literal["active", "pending", "closed"]
MessageAuthor: TypeAlias = Literal["customer", "agent"]

TICKET_PREFIX: Final = "tkt_"
TRIED_FOR: Final = timedelta(days=3)  # Contract, section 7, "Support".
# All calls of one attempt together: contract, section 7, "Support".
ATTEMPT_MAX: Final = timedelta(seconds=10)
# Nobody else posts before an attempt is over for certain, whether its process lives or not.
LEASE: Final = timedelta(seconds=13)
# A desk that was given up may still work. The person who asks again waits for this, within one request.
SETTLING: Final = timedelta(seconds=5)
# The desk ended the exchange itself. What it began it has finished, or will have after this.
BRIEF_SETTLING: Final = timedelta(seconds=2)

_PAUSE_MIN: Final = timedelta(minutes=1)  # Contract, section 7, "Support".
_PAUSE_MAX: Final = timedelta(hours=1)
_REFERENCE: Final = re.compile(r"\[(tkt_[A-Za-z0-9_-]+)\]", re.ASCII)
_STATUSES: Final[dict[str, TicketStatus]] = {
    "active": "active",
    "pending": "pending",
    "closed": "closed",
    "spam": "closed",  # Contract, section 7, "Support".
}


@dataclass(frozen=True, slots=True)
class Ticket:
    """A support ticket.

    `sealed_message` holds the customer's message and address until the desk has them; `conversation_id` and
    `mailbox_id` say where the desk has them. `desk_updated_at` is the desk's time of the last status that was taken.
    `attempts` counts those that may have posted. None may post before `post_after`.
    """

    organization_id: str
    id: str
    subject_id: str
    request_id: str
    subject: str
    status: TicketStatus
    sealed_message: bytes | None = field(repr=False)
    conversation_id: int | None
    mailbox_id: int | None
    desk_updated_at: datetime | None
    attempts: int
    post_after: datetime
    created_at: datetime

    @property
    def desk_subject(self) -> str:
        """The subject of the conversation, by which it is found again. Contract, section 7, "Support"."""
        return f"{self.subject} [{self.id}]"

    def is_at_desk(self) -> bool:
        """Return whether the desk has the ticket, and where is known."""
        return self.conversation_id is not None

    def may_post_at(self, now: datetime) -> bool:
        """Return whether no other attempt can be posting at `now`, nor the desk still be working on an earlier one."""
        return may_post_at(self.post_after, now)


@dataclass(frozen=True, slots=True)
class CustomerMessage:
    """What is sealed until the desk has it: the message, and the verified address of the person who wrote it."""

    email: str = field(repr=False)
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TicketMessage:
    """A message that the customer may see, as plain text."""

    author: MessageAuthor
    body: str = field(repr=False)
    created_at: datetime


def may_post_at(post_after: datetime, now: datetime) -> bool:
    """Return whether an attempt that must wait until `post_after` may post at `now`."""
    # No attempt waits longer than the lease, so the clock was set back.
    return now >= post_after or post_after - now > LEASE


def names_ticket(desk_subject: str, ticket_id: str) -> bool:
    """Return whether the subject of a conversation contains a ticket's reference."""
    return ticket_id in _REFERENCE.findall(desk_subject)


def belongs_to_ticket(desk_subject: str, ticket_id: str) -> bool:
    """Return whether a conversation with this subject was made for the ticket.

    Its reference comes last. A customer may have written any other into the subject.
    """
    return _REFERENCE.findall(desk_subject)[-1:] == [ticket_id]


def status_of(desk_status: str) -> TicketStatus | None:
    """Return the status of a ticket from that of its conversation; None for an unknown one."""
    return _STATUSES.get(desk_status)


def next_attempt_at(created_at: datetime, now: datetime) -> datetime | None:
    """Return when the job tries again to bring a ticket to the desk; None if it gives up.

    The first attempt is a minute after the ticket was made. Pauses are as long as the ticket is old, at most an hour.
    """
    again_at = now + min(max(now - created_at, _PAUSE_MIN), _PAUSE_MAX)
    return again_at if again_at <= created_at + TRIED_FOR else None


def first_attempt_at(created_at: datetime) -> datetime:
    """Return when the job first tries to bring a ticket to the desk; the request has tried before."""
    return created_at + _PAUSE_MIN
