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
