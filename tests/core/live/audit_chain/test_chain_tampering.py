"""Any alteration breaks the chain.

Each alteration is made, verified and rolled back on one connection with every right.
"""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.tenancy.audit_entries import (
    TEXTS,
    broken_at,
    finalise_entry,
    intact,
    make_organization,
    write_entry,
    write_requested_entry,
)

from soundmark.core.domain.tenancy.audit_chain import ChainKey, Verification
from soundmark.core.features.tenancy.audit_log.verification import verify
from soundmark.core.live.audit_chain import AuditChain
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import Tx


class Tampering:
    """A chain with entries of every kind, and a connection that may write anything to the database."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], key: ChainKey, organization_id: str) -> None:
        self.connection = connection
        self.key = key
        self.organization_id = organization_id
        self.entries: list[str] = []
        self.links: list[tuple[int, str, str]] = []

    async def after(self, *statements: tuple[str, Mapping[str, Any]]) -> Verification:
        """Return the finding after these statements, which are then rolled back."""
        async with self.connection.transaction(force_rollback=True):
            for statement, params in statements:
                await self.connection.execute(statement.encode(), {"org": self.organization_id, **params})
            return await verify(Tx(self.connection), self.key, self.organization_id)

    def named_without(self, position: int) -> str:
        """Return the entry that is named once the link at `position` is gone: the next one, if its own has another."""
        _, entry_id, stage = self.links[position - 1]
        keeps_another = stage == "requested" and (entry_id, "final") in {link[1:] for link in self.links}
        return self.links[position][1] if keeps_another else entry_id

    @property
    def sealed(self) -> list[str]:
        """The entries in the order of their last seals."""
        return list(dict.fromkeys(entry_id for _, entry_id, _ in self.links))


@pytest.fixture
async def tampering(
    db: Database, chain: AuditChain, organization_id: str, cluster: RunningCluster
) -> AsyncIterator[Tampering]:
    """A sealed log, and ways to alter it."""
    await write_entry(db, organization_id, name="one")
    requested = await write_requested_entry(db, organization_id)
    await write_entry(db, organization_id, name="three")
    await chain.seal_waiting()
    await finalise_entry(db, organization_id, requested)
    await write_requested_entry(db, organization_id)
    await chain.seal_waiting()
    await write_entry(db, organization_id, name="last")
    await chain.seal_waiting()
    await write_entry(db, organization_id, name="waiting")
    url = cluster.superuser_url_of("core_spare").reveal()
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, options="-c timezone=UTC") as connection:
        await connection.execute("SET session_replication_role = replica")  # Foreign keys are no protection.
        made = Tampering(connection, chain.key, organization_id)
        cursor = await connection.execute("SELECT position, entry_id, stage FROM audit_seals ORDER BY position")
        made.links = await cursor.fetchall()
        assert await made.after() == intact(6, unsealed=1)
        assert len(made.links) == 6
        yield made


VALUES = {
    "text": st.one_of(
        TEXTS,
        st.sampled_from(["requested", "completed", "failed", "final", "user", "system", "api_key", "code.issued"]),
    ),
    "timestamp with time zone": st.one_of(
        st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC)).map(str),  # noqa: DTZ001 - it adds the zone
        st.sampled_from(["infinity", "-infinity", "2026-11-20 10:00:00.000001Z", "0044-03-15 BC", "99999-01-01"]),
    ),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "bytea": st.binary(max_size=64),
}
# Every column of each entry and link, and of the head: read from the database, so that a new one is tried too.
COLUMNS = """
    SELECT column_name, data_type, is_nullable = 'YES'
      FROM information_schema.columns
     WHERE table_name = %(table)s
     ORDER BY ordinal_position
"""


@pytest.mark.parametrize("table", ["audit_entries", "audit_seals", "audit_heads"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_every_alteration_is_found_and_named(tampering: Tampering, table: str, data: st.DataObject) -> None:
    cursor = await tampering.connection.execute(COLUMNS.encode(), {"table": table})
    name, kind, is_nullable = data.draw(st.sampled_from(await cursor.fetchall()))
    values = VALUES[kind]
    value = data.draw(st.one_of(st.none(), values) if is_nullable else values)
    if table == "audit_entries":
        affected = data.draw(st.sampled_from(tampering.sealed))
        where = f"id = '{affected}'"
    elif table == "audit_seals":
        position, affected, _ = data.draw(st.sampled_from(tampering.links))
        where = f"position = {position}"
    else:
        affected, where = tampering.links[-1][1], "true"
    where = f"organization_id = %(org)s AND {where} AND {name} IS DISTINCT FROM %(value)s::{kind}"
    cursor = await tampering.connection.execute(
        f"SELECT FROM {table} WHERE {where}".encode(), {"org": tampering.organization_id, "value": value}
    )
    assume(cursor.rowcount == 1)
    try:
        found = await tampering.after(
            (f"UPDATE {table} SET {name} = %(value)s::{kind} WHERE {where}", {"value": value})
        )
    except psycopg.IntegrityError:
        assume(False)
        raise
    assert not found.is_verified
    named = {affected}
    if (table, name) == ("audit_entries", "id"):
        named = {value}  # Its new id.
    elif (table, name) == ("audit_seals", "organization_id"):
        named = {tampering.named_without(position)}
    elif (table, name) == ("audit_seals", "entry_id"):
        named = {affected, value}  # The entry that lost its seal, or the one that got another's.
    assert found.first_broken in named


async def test_every_deleted_entry_is_found_and_named(tampering: Tampering) -> None:
    for entry_id in tampering.sealed:
        found = await tampering.after(("DELETE FROM audit_entries WHERE id = %(id)s", {"id": entry_id}))
        assert found == broken_at(entry_id, entries=5, unsealed=1)


async def test_every_removed_seal_is_found_and_named(tampering: Tampering) -> None:
    """Where an entry keeps its last seal, only the fact that one is missing before it can be found."""
    for position, _, _ in tampering.links:
        found = await tampering.after(("DELETE FROM audit_seals WHERE position = %(p)s", {"p": position}))
        assert found == broken_at(tampering.named_without(position), entries=6, unsealed=1)


async def test_every_swap_of_two_entries_is_found(tampering: Tampering) -> None:
    swap = """
        UPDATE audit_seals SET position = CASE position WHEN %(a)s THEN %(b)s + 1000 ELSE %(a)s + 1000 END
         WHERE position IN (%(a)s, %(b)s)
    """
    back = "UPDATE audit_seals SET position = position - 1000 WHERE position > 1000"
    for a, b in combinations(range(1, 7), 2):
        found = await tampering.after((swap, {"a": a, "b": b}), (back, {}))
        # The first place that does not verify is the one where the later entry is now.
        assert found == broken_at(tampering.links[b - 1][1], entries=6, unsealed=1)


INSERTED = """
    INSERT INTO audit_entries SELECT organization_id, 'aud_forged', project_id, action, actor_type, actor_id, outcome,
           metadata, %(at)s::timestamptz, finalised_at FROM audit_entries WHERE organization_id = %(org)s LIMIT 1
"""


@pytest.mark.parametrize("at", ["2020-01-01Z", "2026-11-20 10:00Z", "2999-01-01Z"])
async def test_an_inserted_entry_is_found_and_named(tampering: Tampering, at: str) -> None:
    assert await tampering.after((INSERTED, {"at": at})) == broken_at("aud_forged", entries=7, unsealed=1)


@pytest.mark.parametrize("position", [7, 8, 2**63 - 1])
async def test_a_forged_seal_does_not_hide_an_inserted_entry(tampering: Tampering, position: int) -> None:
    seal = "INSERT INTO audit_seals VALUES (%(org)s, %(position)s, 'aud_forged', 'final', %(seal)s)"
    head = "UPDATE audit_heads SET position = %(position)s, entry_id = 'aud_forged', seal = %(seal)s"
    params = {"position": position, "seal": bytes(32)}
    found = await tampering.after((INSERTED, {"at": "2026-11-20Z"}), (seal, params), (head, params))
    assert found == broken_at("aud_forged", entries=7, unsealed=1)


async def test_a_seal_before_the_beginning_is_found(tampering: Tampering) -> None:
    """It would lie outside the walk, and still count as the seal of its entry."""
    seal = "INSERT INTO audit_seals VALUES (%(org)s, 0, 'aud_forged', 'final', '')"
    with pytest.raises(psycopg.errors.CheckViolation):
        await tampering.after((seal, {}))
    allow = "ALTER TABLE audit_seals DROP CONSTRAINT audit_seals_position_check"
    found = await tampering.after((INSERTED, {"at": "2026-11-20Z"}), (allow, {}), (seal, {}))
    assert found == broken_at("aud_forged", entries=7, unsealed=1)


async def test_a_tail_that_was_cut_off_is_found(tampering: Tampering) -> None:
    """The head knows the last entry."""
    last = tampering.links[-1][1]
    for kept in range(6):
        seals = ("DELETE FROM audit_seals WHERE position > %(kept)s", {"kept": kept})
        kept_ids = [entry_id for _, entry_id, _ in tampering.links[:kept]]
        entries = ("DELETE FROM audit_entries WHERE NOT id = ANY(%(ids)s)", {"ids": kept_ids})
        notes = ("DELETE FROM audit_unsealed", {})
        found = await tampering.after(seals, entries, notes)
        # If an entry remains that was finalised in the removed part, its missing seal is found first.
        assert found.first_broken == last or found.first_broken in kept_ids
        assert not found.is_verified
    removed = await tampering.after(("DELETE FROM audit_heads", {}))
    assert removed == broken_at(last, entries=6, unsealed=1)


async def test_the_loss_of_everything_but_the_entries_is_found(tampering: Tampering) -> None:
    wiped = [(f"DELETE FROM {table}", {}) for table in ("audit_seals", "audit_heads", "audit_unsealed")]
    found = await tampering.after(*wiped)
    assert (found.is_verified, found.entries) == (False, 6)
    assert found.first_broken is not None


async def test_a_waiting_entry_that_lost_its_note_is_found(tampering: Tampering) -> None:
    found = await tampering.after(("DELETE FROM audit_unsealed", {}))
    assert not found.is_verified
    assert found.first_broken not in {None, *tampering.sealed}


async def test_the_chain_of_another_organisation_does_not_verify(tampering: Tampering, db: Database) -> None:
    """All of it was moved, with its seals and its head."""
    other = await make_organization(db)
    moved = [
        (f"UPDATE {table} SET organization_id = %(other)s", {"other": other})
        for table in ("audit_entries", "audit_seals", "audit_heads", "audit_unsealed")
    ]
    tampering.organization_id = other
    assert await tampering.after(*moved) == broken_at(tampering.links[0][1], entries=6, unsealed=1)
