"""The table `suspensions`."""

from dataclasses import asdict

from soundmark.audience.domain.suspension import Suspension
from soundmark.kit.postgres.transaction import Tx


async def insert_or_update_newer(tx: Tx, suspension: Suspension) -> None:
    """Store a suspension or restoration, unless one of the same or a later revision is stored already."""
    await tx.run(
        """
        INSERT INTO suspensions AS kept (organization_id, is_suspended, revision)
        VALUES (%(organization_id)s, %(is_suspended)s, %(revision)s)
            ON CONFLICT (organization_id) DO UPDATE
           SET is_suspended = excluded.is_suspended,
               revision = excluded.revision
         WHERE kept.revision < excluded.revision
        """,
        asdict(suspension),
    )


async def find(tx: Tx, organization_id: str) -> Suspension | None:
    """Return what Core last sent about the organisation."""
    return await tx.one_or_none(
        Suspension,
        """
        SELECT organization_id, is_suspended, revision
          FROM suspensions
         WHERE organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id},
    )
