"""The table `desk_conversations`, by which the desk's webhooks find their ticket."""

from dataclasses import dataclass

from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class TicketPlace:
    """Where a ticket is."""

    organization_id: str
    ticket_id: str


async def insert_or_update(tx: Tx, conversation_id: int, place: TicketPlace) -> None:
    """Make a conversation that of a ticket. A desk that replaced another one begins to count again. docs/locks.md."""
    await tx.run(
        """
        INSERT INTO desk_conversations (conversation_id, organization_id, ticket_id)
        VALUES (%(conversation_id)s, %(organization_id)s, %(ticket_id)s)
            ON CONFLICT (conversation_id) DO UPDATE
           SET organization_id = EXCLUDED.organization_id,
               ticket_id = EXCLUDED.ticket_id
        """,
        {
            "conversation_id": conversation_id,
            "organization_id": place.organization_id,
            "ticket_id": place.ticket_id,
        },
    )


async def find(tx: Tx, conversation_id: int) -> TicketPlace | None:
    """Return the ticket of a conversation."""
    return await tx.one_or_none(
        TicketPlace,
        """
        SELECT organization_id, ticket_id
          FROM desk_conversations
         WHERE conversation_id = %(conversation_id)s
        """,
        {"conversation_id": conversation_id},
    )
