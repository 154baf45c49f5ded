"""The table `ticket_replies`."""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.support.reply import TicketReply
from soundmark.kit.postgres.transaction import Tx

_SELECT: Final[LiteralString] = """
    SELECT organization_id, id, ticket_id, subject_id, request_id, sealed_message, thread_id, attempts, post_after,
           created_at
      FROM ticket_replies
"""


async def insert_if_new(tx: Tx, reply: TicketReply) -> bool:
    """Insert a reply, unless its person has one to this ticket for its request; return whether they had none.

    Of two transactions with the same request, the second waits for the first.
    """
    return bool(
        await tx.run(
            """
            INSERT INTO ticket_replies
                   (organization_id, id, ticket_id, subject_id, request_id, sealed_message, post_after, created_at)
            VALUES (%(organization_id)s, %(id)s, %(ticket_id)s, %(subject_id)s, %(request_id)s, %(sealed_message)s,
                    %(post_after)s, %(created_at)s)
                ON CONFLICT (organization_id, ticket_id, subject_id, request_id) DO NOTHING
            """,
            asdict(reply),
        )
    )


async def find(tx: Tx, organization_id: str, reply_id: str) -> TicketReply | None:
    """Return a reply of the organisation."""
    return await tx.one_or_none(
        TicketReply,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(reply_id)s",
        {"organization_id": organization_id, "reply_id": reply_id},
    )


async def find_of_request(
    tx: Tx, organization_id: str, *, ticket_id: str, subject_id: str, request_id: str
) -> TicketReply | None:
    """Return the reply to a ticket that a person made with this request."""
    return await tx.one_or_none(
        TicketReply,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND ticket_id = %(ticket_id)s
           AND subject_id = %(subject_id)s
           AND request_id = %(request_id)s
        """,
        {
            "organization_id": organization_id,
            "ticket_id": ticket_id,
            "subject_id": subject_id,
            "request_id": request_id,
        },
    )


async def lock(tx: Tx, organization_id: str, reply_id: str) -> TicketReply | None:
    """Return a reply of the organisation, and keep it from changing until the transaction ends.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        TicketReply,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(reply_id)s FOR NO KEY UPDATE",
        {"organization_id": organization_id, "reply_id": reply_id},
    )


async def update_attempt(tx: Tx, reply: TicketReply, *, post_after: datetime) -> TicketReply:
    """Begin an attempt in a locked row, and return the reply with it. Nobody else may post before `post_after`."""
    begun = replace(reply, attempts=reply.attempts + 1, post_after=post_after)
    await tx.run(
        """
        UPDATE ticket_replies
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


async def update_post_after(tx: Tx, reply: TicketReply, *, post_after: datetime) -> None:
    """Store from when the next attempt may post, unless one has begun since that of `reply`."""
    await tx.run(
        """
        UPDATE ticket_replies
           SET post_after = %(post_after)s
         WHERE organization_id = %(organization_id)s
           AND id = %(id)s
           AND attempts = %(attempts)s
           AND thread_id IS NULL
        """,
        {**asdict(reply), "post_after": post_after},
    )


async def update_at_desk(tx: Tx, organization_id: str, reply_id: str, *, thread_id: int) -> None:
    """Store where the desk has a locked reply, and destroy the message."""
    await tx.run(
        """
        UPDATE ticket_replies
           SET thread_id = %(thread_id)s,
               sealed_message = NULL
         WHERE organization_id = %(organization_id)s
           AND id = %(reply_id)s
        """,
        {"organization_id": organization_id, "reply_id": reply_id, "thread_id": thread_id},
    )
