"""The table `release_readiness`, which has at most one row and does not belong to a tenant."""

from datetime import datetime

from soundmark.core.domain.platform.release import EvidenceFinding, StoredReadiness
from soundmark.kit.postgres.transaction import Tx


async def find(tx: Tx) -> StoredReadiness | None:
    """Return what the worker last found; None if it has never looked."""
    return await tx.one_or_none(StoredReadiness, "SELECT computed_at, evidence, finding FROM release_readiness")


async def lock(tx: Tx) -> StoredReadiness | None:
    """Return the same, and keep other workers from replacing it until the transaction ends."""
    return await tx.one_or_none(
        StoredReadiness, "SELECT computed_at, evidence, finding FROM release_readiness FOR NO KEY UPDATE"
    )


async def insert_or_update(tx: Tx, *, evidence: str | None, finding: EvidenceFinding | None, now: datetime) -> None:
    """Store what was found in place of what was found before."""
    await tx.run(
        """
        INSERT INTO release_readiness (computed_at, evidence, finding)
        VALUES (%(now)s, %(evidence)s, %(finding)s)
            ON CONFLICT (is_only) DO UPDATE
           SET computed_at = excluded.computed_at, evidence = excluded.evidence, finding = excluded.finding
        """,
        {"now": now, "evidence": evidence, "finding": finding},
    )
