"""Audit entries at every stage, and the chain that seals them."""

from datetime import UTC, datetime
from typing import Any, Final

from hypothesis import strategies as st

from soundmark.core.domain.tenancy.audit import AuditEntry
from soundmark.core.domain.tenancy.audit_chain import Verification
from soundmark.core.domain.tenancy.scope import Actor
from soundmark.core.features.tenancy.audit_log.verification import verify
from soundmark.core.live.audit_chain import AuditChain
from soundmark.core.steps.audit import record_as
from soundmark.core.store.tenancy import audit, organizations
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.postgres.database import Database
from soundmark.kit.text.ids import mint
from support.api.core_settings import MASTER_KEY
from support.processes.fake_clock import FakeClock

ENTROPY: Final = SystemEntropy()
SEALER: Final = Sealer(parse_master_key(MASTER_KEY), ENTROPY)
NOBODY: Final = Actor("system", "tests")
NOW: Final = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


async def open_chain(db: Database, sealer: Sealer = SEALER) -> AuditChain:
    """Return the chain of a Core process, which seals nothing until a test says so."""
    chain = AuditChain(db, sealer, FakeClock(), ENTROPY)
    await chain.open()
    return chain


async def make_organization(db: Database) -> str:
    organization_id = mint(ENTROPY, "org_")
    async with db.transaction(tenant=organization_id) as tx:
        await organizations.insert(tx, organization_id=organization_id, name="Radio Nordlicht", now=NOW)
    return organization_id


async def write_entry(db: Database, organization_id: str, **metadata: Any) -> str:
    """Commit a new entry and return its id."""
    async with db.transaction(tenant=organization_id) as tx:
        entry = await record_as(
            tx, NOBODY, ENTROPY, "project.updated", organization_id=organization_id, now=NOW, **metadata
        )
    return entry.id


async def write_requested_entry(db: Database, organization_id: str) -> str:
    """Commit an entry without an outcome and return its id."""
    entry = AuditEntry(
        id=mint(ENTROPY, "aud_"),
        organization_id=organization_id,
        project_id=None,
        action="project.updated",
        actor_type="system",
        actor_id="tests",
        outcome="requested",
        metadata="{}",
        created_at=NOW,
        finalised_at=None,
    )
    async with db.transaction(tenant=organization_id) as tx:
        await audit.insert(tx, [entry], stage="requested")
    return entry.id


async def finalise_entry(db: Database, organization_id: str, entry_id: str, outcome: str = "failed") -> None:
    params = {"organization_id": organization_id, "id": entry_id, "outcome": outcome, "now": NOW}
    async with db.transaction(tenant=organization_id) as tx:
        await tx.run(
            "UPDATE audit_entries SET outcome = %(outcome)s, finalised_at = %(now)s"
            " WHERE organization_id = %(organization_id)s AND id = %(id)s",
            params,
        )
        await tx.run("INSERT INTO audit_unsealed VALUES (%(organization_id)s, %(id)s, 'final', %(now)s)", params)


async def verify_chain(db: Database, chain: AuditChain, organization_id: str) -> Verification:
    async with db.snapshot(tenant=organization_id) as tx:
        return await verify(tx, chain.key, organization_id)


def intact(entries: int, unsealed: int = 0) -> Verification:
    return Verification(is_verified=True, entries=entries, unsealed=unsealed, first_broken=None)


def broken_at(first: str | None, entries: int, unsealed: int = 0) -> Verification:
    return Verification(is_verified=False, entries=entries, unsealed=unsealed, first_broken=first)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
