"""The table `deletion_certificates`."""

from datetime import datetime

from soundmark.kit.postgres.transaction import Tx


async def insert(tx: Tx, certificate_id: str, document: bytes, *, now: datetime) -> None:
    """Insert a signed certificate."""
    await tx.run(
        """
        INSERT INTO deletion_certificates (id, document, completed_at)
        VALUES (%(certificate_id)s, %(document)s, %(now)s)
        """,
        {"certificate_id": certificate_id, "document": document, "now": now},
    )


async def find(tx: Tx, certificate_id: str) -> bytes | None:
    """Return the JSON text of a certificate."""
    document: bytes | None = await tx.value(
        "SELECT document FROM deletion_certificates WHERE id = %(certificate_id)s", {"certificate_id": certificate_id}
    )
    return document


async def list_page(tx: Tx, *, after: str, limit: int) -> list[tuple[str, bytes]]:
    """Return up to `limit` certificates after this id, each with its id, by id."""
    rows = await tx.rows(
        "SELECT id, document FROM deletion_certificates WHERE id > %(after)s ORDER BY id LIMIT %(limit)s",
        {"after": after, "limit": limit},
    )
    return [(row[0], row[1]) for row in rows]
