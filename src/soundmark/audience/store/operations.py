"""The table `operations`."""

from dataclasses import asdict
from datetime import datetime
from typing import Final

from soundmark.audience.domain.operation import Operation
from soundmark.kit.postgres.transaction import Tx

_OPERATION_LOCK: Final = 1  # Kind of advisory lock: docs/locks.md.


async def lock(tx: Tx, operation_id: str) -> None:
    """Keep everybody else from carrying out an operation until the transaction ends. Lock order: docs/locks.md."""
    await tx.run(
        "SELECT pg_advisory_xact_lock(%(kind)s, hashtext(%(operation_id)s))",
        {"kind": _OPERATION_LOCK, "operation_id": operation_id},
    )


async def find(tx: Tx, operation_id: str) -> Operation | None:
    """Return an operation that was carried out."""
    return await tx.one_or_none(
        Operation,
        """
        SELECT id, organization_id, project_id, integration_id, action, answer
          FROM operations
         WHERE id = %(operation_id)s
        """,
        {"operation_id": operation_id},
    )


async def insert(tx: Tx, operation: Operation, *, now: datetime) -> None:
    """Insert an operation that was carried out."""
    await tx.run(
        """
        INSERT INTO operations (id, organization_id, project_id, integration_id, action, answer, applied_at)
        VALUES (%(id)s, %(organization_id)s, %(project_id)s, %(integration_id)s, %(action)s, %(answer)s, %(now)s)
        """,
        {**asdict(operation), "now": now},
    )
