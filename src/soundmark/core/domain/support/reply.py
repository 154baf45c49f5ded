"""Replies to support tickets, and how each becomes exactly one thread of its ticket's conversation."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from soundmark.core.domain.support.ticket import may_post_at
from soundmark.kit.text.ids import ID_CHARS

REPLY_PREFIX: Final = "rpl_"

_REFERENCE: Final = re.compile(rf"\[({REPLY_PREFIX}[A-Za-z0-9_-]{{{ID_CHARS}}})\]", re.ASCII)
_REFERENCE_CHARS: Final = len(f"[{REPLY_PREFIX}]") + ID_CHARS


@dataclass(frozen=True, slots=True)
class TicketReply:
    """A reply that a member wrote to a ticket.

    `sealed_message` holds the message and the author's address until the desk has them; `thread_id` says where the desk
    has them. `attempts` counts those that may have posted. None may post before `post_after`.
    """

    organization_id: str
    id: str
    ticket_id: str
    subject_id: str
    request_id: str
    sealed_message: bytes | None = field(repr=False)
    thread_id: int | None
    attempts: int
    post_after: datetime
    created_at: datetime

    def is_at_desk(self) -> bool:
        """Return whether the desk has the reply, and where is known."""
        return self.thread_id is not None

    def may_post_at(self, now: datetime) -> bool:
        """Return whether no other attempt can be posting at `now`, nor the desk still be working on an earlier one."""
        return may_post_at(self.post_after, now)


def add_reference(text: str, reply_id: str) -> str:
    """Return a message with the reference of its reply, by which its thread is found again, as its last line."""
    return f"{text}\n\n[{reply_id}]"


def split_reference(text: str) -> tuple[str, str | None]:
    """Return a customer's message as it was written, and the id of its reply; None if it ends with no reference."""
    reference = _REFERENCE.fullmatch(text[-_REFERENCE_CHARS:])
    if reference is None:
        return text, None
    return text[:-_REFERENCE_CHARS].rstrip(), reference[1]
