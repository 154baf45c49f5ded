"""Core without its audit chain, to measure the chain's cost: entries are written, and none is to be sealed."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from soundmark.core.domain.tenancy.audit import AuditEntry
from soundmark.core.live.audit_chain import AuditChain
from soundmark.core.store.tenancy import audit
from soundmark.kit.postgres.transaction import AnyTx

SETTING: Final = "BENCH_UNCHAINED"  # Set to anything, it makes `bench.server` serve this.


def install() -> None:
    """Make this process write entries without a note for the sealer, and seal none."""
    audit.insert = _insert
    AuditChain.keep_sealing = _nothing  # type: ignore[method-assign,assignment]  # that is what it is about


async def _insert(tx: AnyTx, entries: Sequence[AuditEntry], **_: Any) -> None:
    statement: Final = """
        INSERT INTO audit_entries
               (organization_id, id, project_id, action, actor_type, actor_id, outcome, metadata, created_at,
                finalised_at)
        VALUES (%(organization_id)s, %(id)s, %(project_id)s, %(action)s, %(actor_type)s, %(actor_id)s,
                %(outcome)s, %(metadata)s, %(created_at)s, %(finalised_at)s)
        """
    for entry in entries:
        await tx.run(statement, asdict(entry))


async def _nothing(_: AuditChain) -> None:
    await asyncio.Event().wait()
