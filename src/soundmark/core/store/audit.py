"""The tables of the audit log."""

from dataclasses import asdict

from soundmark.core.domain.audit import AuditEntry, Stage
from soundmark.kit.postgres import Tx


async def insert(tx: Tx, entry: AuditEntry, *, stage: Stage) -> None:
    """Record an entry, and that it is to be sealed."""
    await tx.run(
        """
        WITH entry AS (
            INSERT INTO audit_entries
                   (organization_id, id, project_id, action, actor_type, actor_id, outcome, metadata, created_at,
                    finalised_at)
            VALUES (%(organization_id)s, %(id)s, %(project_id)s, %(action)s, %(actor_type)s, %(actor_id)s,
                    %(outcome)s, %(metadata)s, %(created_at)s, %(finalised_at)s)
        )
        INSERT INTO audit_unsealed (organization_id, entry_id, stage, created_at)
        VALUES (%(organization_id)s, %(id)s, %(stage)s, %(created_at)s)
        """,
        {**asdict(entry), "stage": stage},
    )
