"""The tables `audit_unlogged` and `audit_logged_heads`: which heads of chains the transparency log has."""

from dataclasses import asdict

from soundmark.core.domain.tenancy.audit_chain import LoggedHead
from soundmark.kit.postgres.transaction import Tx


async def list_grown(tx: Tx, *, after: str, limit: int) -> list[str]:
    """Return the ids of up to `limit` organisations after `after` whose head is to be entered, outside any tenant."""
    rows = await tx.rows(
        """
        SELECT organization_id
          FROM audit_unlogged
         WHERE organization_id > %(after)s
         ORDER BY organization_id
         LIMIT %(limit)s
        """,
        {"after": after, "limit": limit},
    )
    return [organization_id for (organization_id,) in rows]


async def delete_grown(tx: Tx, organization_id: str) -> bool:
    """Delete the note of an organisation whose head is locked; return False if another worker has entered it."""
    deleted = await tx.run(
        "DELETE FROM audit_unlogged WHERE organization_id = %(organization_id)s", {"organization_id": organization_id}
    )
    return deleted > 0


async def insert(tx: Tx, organization_id: str, head: LoggedHead) -> None:
    """Insert a head that is entered by this transaction."""
    await tx.run(
        """
        INSERT INTO audit_logged_heads (organization_id, entries, chain_hash, digest, logged_at)
        VALUES (%(organization_id)s, %(entries)s, %(chain_hash)s, %(digest)s, %(logged_at)s)
        """,
        {"organization_id": organization_id, **asdict(head)},
    )


async def list_newest_first(tx: Tx, organization_id: str) -> list[LoggedHead]:
    """Return the heads that were entered, from the newest to the newest that was published when one was entered."""
    return await tx.all(
        LoggedHead,
        """
        SELECT entries, chain_hash, digest, logged_at
          FROM audit_logged_heads
         WHERE organization_id = %(organization_id)s
         ORDER BY entries DESC
        """,
        {"organization_id": organization_id},
    )


async def delete_older(tx: Tx, organization_id: str, *, than: int) -> None:
    """Delete the heads of fewer entries, once one of this many is published."""
    await tx.run(
        "DELETE FROM audit_logged_heads WHERE organization_id = %(organization_id)s AND entries < %(than)s",
        {"organization_id": organization_id, "than": than},
    )
