"""The table `tickets`."""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.support.ticket import Ticket, TicketStatus
from soundmark.kit.postgres.paging import NEWEST_FIRST, page_params
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position

_SELECT: Final[LiteralString] = """
    SELECT organization_id, id, subject_id, request_id, subject, status, sealed_message, conversation_id, mailbox_id,
           desk_updated_at, attempts, post_after, created_at
      FROM tickets
"""


async def insert_if_new(tx: Tx, ticket: Ticket) -> bool:
    """Insert a ticket, unless its person has one for its request; return whether they had none.

    Of two transactions with the same request, the second waits for the first.
    """
    return bool(
        await tx.run(
            """
            INSERT INTO tickets
                   (organization_id, id, subject_id, request_id, subject, status, sealed_message, post_after,
                    created_at)
            VALUES (%(organization_id)s, %(id)s, %(subject_id)s, %(request_id)s, %(subject)s, %(status)s,
                    %(sealed_message)s, %(post_after)s, %(created_at)s)
                ON CONFLICT (organization_id, subject_id, request_id) DO NOTHING
            """,
            asdict(ticket),
        )
    )


async def find(tx: Tx, organization_id: str, ticket_id: str) -> Ticket | None:
    """Return a ticket of the organisation."""
    return await tx.one_or_none(
        Ticket,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(ticket_id)s",
        {"organization_id": organization_id, "ticket_id": ticket_id},
    )


async def find_of_request(tx: Tx, organization_id: str, *, subject_id: str, request_id: str) -> Ticket | None:
    """Return the ticket that a person made with this request."""
    return await tx.one_or_none(
        Ticket,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND subject_id = %(subject_id)s
           AND request_id = %(request_id)s
        """,
        {"organization_id": organization_id, "subject_id": subject_id, "request_id": request_id},
    )


async def find_organization_id(tx: Tx, ticket_id: str) -> str | None:
    """Return the organisation of a ticket; None if there is no such ticket."""
    organization_id: str | None = await tx.value(
        "SELECT organization_id FROM tickets WHERE id = %(ticket_id)s", {"ticket_id": ticket_id}
    )
    return organization_id


async def list_newest_first(tx: Tx, organization_id: str, *, before: Position | None, limit: int) -> list[Ticket]:
    """Return up to `limit` tickets of the organisation, newest first, without their messages."""
    return await tx.all(
        Ticket,
        """
        SELECT organization_id, id, subject_id, request_id, subject, status, NULL AS sealed_message, conversation_id,
               mailbox_id, desk_updated_at, attempts, post_after, created_at
          FROM tickets
         WHERE organization_id = %(organization_id)s
        """
        + NEWEST_FIRST,
        {"organization_id": organization_id, **page_params(before, limit)},
    )


async def lock(tx: Tx, organization_id: str, ticket_id: str) -> Ticket | None:
    """Return a ticket of the organisation, and keep it from changing until the transaction ends.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        Ticket,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(ticket_id)s FOR NO KEY UPDATE",
        {"organization_id": organization_id, "ticket_id": ticket_id},
    )


async def update_attempt(tx: Tx, ticket: Ticket, *, post_after: datetime) -> Ticket:
    """Begin an attempt in a locked row, and return the ticket with it. Nobody else may post before `post_after`."""
    begun = replace(ticket, attempts=ticket.attempts + 1, post_after=post_after)
    await tx.run(
        """
        UPDATE tickets
           SET attempts = %(attempts)s,
               post_after = %(post_after)s
         WHERE organization_id = %(organization_id)s
           AND id = %(id)s
        """,
        {
            "organization_id": begun.organization_id,
            "id": begun.id,
            "attempts": begun.attempts,
            "post_after": begun.post_after,
        },
    )
    return begun


async def update_post_after(tx: Tx, ticket: Ticket, *, post_after: datetime) -> None:
    """Store from when the next attempt may post, unless one has begun since that of `ticket`."""
    await tx.run(
        """
        UPDATE tickets
           SET post_after = %(post_after)s
         WHERE organization_id = %(organization_id)s
           AND id = %(id)s
           AND attempts = %(attempts)s
           AND conversation_id IS NULL
        """,
        {**asdict(ticket), "post_after": post_after},
    )


async def update_at_desk(
    tx: Tx, organization_id: str, ticket_id: str, *, conversation_id: int, mailbox_id: int, status: TicketStatus
) -> None:
    """Store where the desk has a locked ticket, and destroy the message."""
    await tx.run(
        """
        UPDATE tickets
           SET conversation_id = %(conversation_id)s,
               mailbox_id = %(mailbox_id)s,
               status = %(status)s,
               sealed_message = NULL
         WHERE organization_id = %(organization_id)s
           AND id = %(ticket_id)s
        """,
        {
            "organization_id": organization_id,
            "ticket_id": ticket_id,
            "conversation_id": conversation_id,
            "mailbox_id": mailbox_id,
            "status": status,
        },
    )


async def update_status(
    tx: Tx, organization_id: str, ticket_id: str, *, status: TicketStatus, desk_updated_at: datetime
) -> None:
    """Store the desk's status of a locked ticket, and its time at the desk."""
    await tx.run(
        """
        UPDATE tickets
           SET status = %(status)s,
               desk_updated_at = %(desk_updated_at)s
         WHERE organization_id = %(organization_id)s
           AND id = %(ticket_id)s
        """,
        {
            "organization_id": organization_id,
            "ticket_id": ticket_id,
            "status": status,
            "desk_updated_at": desk_updated_at,
        },
    )
