"""The audit chain: sealed by anybody, unbroken whoever writes and dies, and broken by whatever is altered."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, Final

import psycopg
import pytest
from core_app import MASTER_KEY, Api, FakeClock, Rival, core_settings, running_core
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from soundmark.core import audit_chain as audit_chain_module
from soundmark.core.audit_chain import AuditChain, ChainBroken
from soundmark.core.domain.audit import AuditEntry
from soundmark.core.domain.audit_chain import ChainKey, Content, Verification, _canonical
from soundmark.core.domain.scope import Actor
from soundmark.core.features.audit_log import verification
from soundmark.core.features.audit_log.verification import verify
from soundmark.core.steps.audit import record_as
from soundmark.core.store import audit, organizations
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.canonical import canonicalize
from soundmark.kit.entropy import SystemEntropy
from soundmark.kit.ids import mint
from soundmark.kit.postgres import Database, Tx
from soundmark.kit.problems import DatabaseUnavailable
from soundmark.kit.sealing import SealBroken, Sealer, parse_master_key
from soundmark.kit.secret import Secret
from soundmark.kit.tasks import ended

ENTROPY: Final = SystemEntropy()
SEALER: Final = Sealer(parse_master_key(MASTER_KEY), ENTROPY)
NOBODY: Final = Actor("system", "tests")
NOW: Final = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


@pytest.fixture
async def db(spare_database_url: Secret) -> AsyncIterator[Database]:
    opened = Database(spare_database_url, pool_size=12, application_name="tests")
    await opened.open()
    yield opened
    await opened.close()


async def opened_chain(db: Database, sealer: Sealer = SEALER) -> AuditChain:
    """What a Core process would have; nothing is sealed until it is told to."""
    chain = AuditChain(db, sealer, FakeClock(), ENTROPY)
    await chain.open()
    return chain


@pytest.fixture
async def chain(db: Database) -> AuditChain:
    return await opened_chain(db)


@pytest.fixture
def rival(spare_database_url: Secret, cluster: RunningCluster) -> Rival:
    assert spare_database_url is not None, "the database is empty"
    return Rival(cluster.superuser_url_of("core_spare"))


async def given_organization(db: Database) -> str:
    organization_id = mint(ENTROPY, "org_")
    async with db.transaction(tenant=organization_id) as tx:
        await organizations.insert(tx, organization_id=organization_id, name="Radio Nordlicht", now=NOW)
    return organization_id


@pytest.fixture
async def organization_id(db: Database) -> str:
    return await given_organization(db)


async def write(db: Database, organization_id: str, **metadata: Any) -> str:
    """The id of a new entry, committed."""
    async with db.transaction(tenant=organization_id) as tx:
        entry = await record_as(
            tx, organization_id, NOBODY, ENTROPY, action="project.updated", now=NOW, metadata=metadata
        )
    return entry.id


async def request(db: Database, organization_id: str) -> str:
    """The id of an entry of which it is not known yet how it ends."""
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
        await audit.insert(tx, entry, stage="requested")
    return entry.id


async def finalise(db: Database, organization_id: str, entry_id: str, outcome: str = "failed") -> None:
    params = {"organization_id": organization_id, "id": entry_id, "outcome": outcome, "now": NOW}
    async with db.transaction(tenant=organization_id) as tx:
        await tx.run(
            "UPDATE audit_entries SET outcome = %(outcome)s, finalised_at = %(now)s"
            " WHERE organization_id = %(organization_id)s AND id = %(id)s",
            params,
        )
        await tx.run("INSERT INTO audit_unsealed VALUES (%(organization_id)s, %(id)s, 'final', %(now)s)", params)


async def verified(db: Database, chain: AuditChain, organization_id: str) -> Verification:
    async with db.snapshot(tenant=organization_id) as tx:
        return await verify(tx, chain.key, organization_id)


def good(entries: int, unsealed: int = 0) -> Verification:
    return Verification(is_verified=True, entries=entries, unsealed=unsealed, first_broken=None)


def broken(first: str | None, entries: int, unsealed: int = 0) -> Verification:
    return Verification(is_verified=False, entries=entries, unsealed=unsealed, first_broken=first)


# Sealing.


async def test_entries_are_sealed_after_their_commit(db: Database, chain: AuditChain, organization_id: str) -> None:
    assert await verified(db, chain, organization_id) == good(0)
    for _ in range(3):
        await write(db, organization_id)
    assert await verified(db, chain, organization_id) == good(3, unsealed=3)
    await chain.seal_waiting()
    assert await verified(db, chain, organization_id) == good(3)
    await write(db, organization_id)
    assert await verified(db, chain, organization_id) == good(4, unsealed=1)
    await chain.seal_waiting()
    assert await verified(db, chain, organization_id) == good(4)


async def test_more_than_is_sealed_at_once_is_sealed(
    db: Database, chain: AuditChain, organization_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And verified in pieces that are smaller than the chain."""
    monkeypatch.setattr(audit_chain_module, "SEALED_AT_ONCE", 2)
    monkeypatch.setattr(audit_chain_module, "_TENANTS_AT_ONCE", 1)
    monkeypatch.setattr(verification, "_LINKS_AT_ONCE", 2)
    others = [await given_organization(db) for _ in range(3)]
    for number in range(4):
        for each in (organization_id, *others[: number + 1]):
            await write(db, each)
    await chain.seal_waiting()
    assert await verified(db, chain, organization_id) == good(4)
    assert [(await verified(db, chain, other)).unsealed for other in others] == [0, 0, 0]


async def test_an_entry_is_sealed_when_it_is_written_and_when_it_is_finalised(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival
) -> None:
    """Whether or not the first of these happened before the second."""
    early = await request(db, organization_id)
    await chain.seal_waiting()
    late = await request(db, organization_id)
    await finalise(db, organization_id, late)
    await finalise(db, organization_id, early, "completed")
    assert await verified(db, chain, organization_id) == good(2, unsealed=2)
    await chain.seal_waiting()
    assert await verified(db, chain, organization_id) == good(2)
    rows = await rival.rows("SELECT position, entry_id, stage FROM audit_seals ORDER BY position")
    assert rows[0] == (1, early, "requested")
    assert [stage for _, entry_id, stage in rows if entry_id == late] == ["requested", "final"]
    assert len(rows) == 4


async def test_what_was_finalised_is_not_rewritten(db: Database, chain: AuditChain, organization_id: str) -> None:
    entry_id = await request(db, organization_id)
    await finalise(db, organization_id, entry_id)
    await chain.seal_waiting()
    async with db.transaction(tenant=organization_id) as tx:
        await tx.run("UPDATE audit_entries SET outcome = 'completed'")
    assert await verified(db, chain, organization_id) == broken(entry_id, entries=1)


async def test_many_writers_and_several_sealers_make_one_unbroken_chain(
    db: Database, spare_database_url: Secret, organization_id: str, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sealer as in a process of its own, with its own connections, all of them always at it."""
    monkeypatch.setattr(audit_chain_module, "SEAL_EVERY_S", 0.0)
    monkeypatch.setattr(audit_chain_module, "SEALED_AT_ONCE", 7)

    async def writer() -> None:
        for number in range(20):
            await write(db, organization_id, number=number)

    async with contextlib.AsyncExitStack() as stack:
        chains = []
        for _ in range(3):
            process = Database(spare_database_url, pool_size=2, application_name="tests")
            await process.open()
            stack.push_async_callback(process.close)
            chains.append(await opened_chain(process))
            stack.push_async_callback(ended, asyncio.create_task(chains[-1].keep_sealing()))
        await asyncio.gather(*[writer() for _ in range(10)])
        async with asyncio.timeout(60):
            while (found := await verified(db, chains[0], organization_id)).unsealed:
                assert found.is_verified
        assert found == good(200)
    rows = await rival.rows("SELECT position FROM audit_seals ORDER BY position")
    assert [position for (position,) in rows] == list(range(1, 201))
    assert await rival.rows("SELECT position FROM audit_heads") == [(200,)]


async def test_two_cores_seal_what_either_wrote(database_url: Secret, api: Api, audio_url: str) -> None:
    """As they are in production, through their public API."""
    async with running_core(core_settings(database_url, audio_url=audio_url), api.clock) as other:
        tenant = await api.given_tenant()
        names = [f"Project {number}" for number in range(24)]
        await asyncio.gather(
            *[(api, other)[number % 2].given_project(tenant.organization_id, name) for number, name in enumerate(names)]
        )
        async with asyncio.timeout(60):
            while True:
                answer = await other.get("/v1/audit-log/verification", params=tenant.query)
                assert answer.json["verified"]
                if answer.json["unsealed"] == 0:
                    break
    assert answer.json == {"verified": True, "entries": 26, "unsealed": 0, "first_broken": None}


def test_an_entry_is_sealed_within_a_second() -> None:
    """A sealer looks often enough that one round more would still be in time."""
    assert audit_chain_module.SEAL_EVERY_S * 2 < 1


# Who waits for whom.


async def test_a_writer_waits_for_no_other_and_for_no_sealer(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival
) -> None:
    first = await write(db, organization_id)
    await chain.seal_waiting()
    async with (
        rival.holding("SELECT FROM audit_heads FOR UPDATE"),
        rival.holding("UPDATE audit_seals SET position = 2"),
        rival.committing(
            "WITH e AS (INSERT INTO audit_entries SELECT organization_id, 'aud_slow', project_id, action, actor_type,"
            " actor_id, outcome, metadata, created_at, finalised_at FROM audit_entries RETURNING organization_id, id)"
            " INSERT INTO audit_unsealed SELECT organization_id, id, 'final', now() FROM e"
        ),
    ):
        second = await asyncio.wait_for(write(db, organization_id), 20)
        # Neither does a sealer wait; the head is another's, so there is nothing to do.
        await asyncio.wait_for(chain.seal_waiting(), 20)
        assert await verified(db, chain, organization_id) == good(2, unsealed=1)
    await chain.seal_waiting()
    assert await verified(db, chain, organization_id) == good(3)
    rows = await rival.rows("SELECT entry_id FROM audit_seals ORDER BY position")
    assert rows[0] == (first,)
    assert {entry_id for (entry_id,) in rows[1:]} == {second, "aud_slow"}


async def test_a_sealer_passes_over_an_organisation_that_is_being_deleted(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival
) -> None:
    other = await given_organization(db)
    for each in (organization_id, other):
        await write(db, each)
    async with rival.committing("DELETE FROM organizations WHERE id = %s", organization_id):
        await asyncio.wait_for(chain.seal_waiting(), 20)
        assert await verified(db, chain, other) == good(1)
    for table in ("audit_entries", "audit_unsealed", "audit_seals", "audit_heads"):
        assert await rival.rows(f"SELECT FROM {table} WHERE organization_id = %s", organization_id) == []
    await chain.seal_waiting()


# What fails.


async def test_a_sealer_that_dies_in_the_middle_has_done_nothing(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival
) -> None:
    await write(db, organization_id)
    await chain.seal_waiting()
    second = await write(db, organization_id)
    state = "SELECT (SELECT count(*) FROM audit_seals), (SELECT max(position) FROM audit_heads)"
    async with rival.holding("SELECT FROM audit_unsealed FOR UPDATE"):
        # Its seals are inserted, and it is about to take the entry off the list.
        sealing = await rival.while_waiting(chain.seal_waiting())
        await rival.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        with pytest.raises(DatabaseUnavailable):
            await sealing
        assert await rival.rows(state) == [(1, 1)]
        assert await verified(db, chain, organization_id) == good(2, unsealed=1)
    await chain.seal_waiting()
    assert await verified(db, chain, organization_id) == good(2)
    assert await rival.rows("SELECT position FROM audit_seals WHERE entry_id = %s", second) == [(2,)]


async def test_a_note_that_stayed_behind_is_removed(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival
) -> None:
    """An entry is sealed once at each stage, whoever asks again."""
    entry_id = await write(db, organization_id)
    await chain.seal_waiting()
    await rival.run("INSERT INTO audit_unsealed VALUES (%s, %s, 'final', now())", organization_id, entry_id)
    await write(db, organization_id)
    await chain.seal_waiting()
    assert await verified(db, chain, organization_id) == good(2)


async def test_nothing_is_sealed_on_top_of_a_broken_end(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another organisation's entries are, and the trouble is logged once, not with every round."""
    monkeypatch.setattr(audit_chain_module, "SEAL_EVERY_S", 0.0)
    first = await write(db, organization_id)
    await chain.seal_waiting()
    await rival.run("UPDATE audit_heads SET seal = decode(repeat('00', 32), 'hex')")
    await write(db, organization_id)
    other = await given_organization(db)
    with capture_logs() as logged:
        sealing = asyncio.create_task(chain.keep_sealing())
        for _ in range(3):
            await write(db, other)
            async with asyncio.timeout(60):
                while (await verified(db, chain, other)).unsealed:
                    pass
        await ended(sealing)
    assert [(line["event"], line["organization_id"], line["error"]) for line in logged] == [
        ("audit_entries_not_sealed", organization_id, ChainBroken.__name__)
    ]
    assert await verified(db, chain, organization_id) == broken(first, entries=2, unsealed=1)


@pytest.mark.parametrize("failure", [RuntimeError("a mistake of ours"), DatabaseUnavailable()], ids=repr)
async def test_no_failure_ends_the_sealing(
    db: Database,
    chain: AuditChain,
    organization_id: str,
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
) -> None:
    monkeypatch.setattr(audit_chain_module, "SEAL_EVERY_S", 0.0)
    genuine, failed = audit_chain_module.audit_chain.list_waiting_tenants, asyncio.Event()
    rounds = 0

    async def list_waiting_tenants(*arguments: Any, **options: Any) -> list[str]:
        nonlocal rounds
        rounds += 1
        if rounds < 4:
            raise failure
        failed.set()
        return await genuine(*arguments, **options)

    monkeypatch.setattr(audit_chain_module.audit_chain, "list_waiting_tenants", list_waiting_tenants)
    await write(db, organization_id)
    with capture_logs() as logged:
        sealing = asyncio.create_task(chain.keep_sealing())
        async with asyncio.timeout(60):
            await failed.wait()
            while (await verified(db, chain, organization_id)).unsealed:
                pass
        await ended(sealing)
    expected = [] if isinstance(failure, DatabaseUnavailable) else ["RuntimeError"]
    assert [line["error"] for line in logged] == expected


async def test_the_sealing_is_over_when_the_app_has_stopped(
    spare_database_url: Secret, db: Database, rival: Rival
) -> None:
    """Stopped in the middle of it, it leaves neither a task nor a half-sealed entry behind."""
    before = asyncio.all_tasks()
    async with contextlib.AsyncExitStack() as held:
        async with running_core(core_settings(spare_database_url)):
            organization_id = await given_organization(db)
            await write(db, organization_id)
            await held.enter_async_context(rival.holding("SELECT FROM audit_unsealed FOR UPDATE"))
            await rival.until_someone_waits()
            chain = await opened_chain(db)
        assert "audit-chain" not in {task.get_name() for task in asyncio.all_tasks() - before}
        assert await verified(db, chain, organization_id) == good(1, unsealed=1)


# The key.


async def test_several_first_starts_at_once_agree_on_one_key(db: Database, rival: Rival) -> None:
    chains = await asyncio.gather(*[opened_chain(db) for _ in range(8)])
    assert len({chain.key.genesis("org_1") for chain in chains}) == 1
    ((sealed,),) = await rival.rows("SELECT sealed FROM instance_secrets")
    key = SEALER.unseal(sealed, table="instance_secrets", column="sealed", row="audit_chain_key")
    assert ChainKey(key).genesis("org_1") == chains[0].key.genesis("org_1")
    assert key not in sealed


async def test_a_later_start_has_the_same_key(db: Database, chain: AuditChain) -> None:
    assert (await opened_chain(db)).key.genesis("org_1") == chain.key.genesis("org_1")


@pytest.mark.usefixtures("chain")
async def test_another_master_key_does_not_open_the_chain(db: Database) -> None:
    """Core does not start with it: what it would seal nobody could verify."""
    with pytest.raises(SealBroken):
        await opened_chain(db, Sealer(bytes(32), ENTROPY))


async def test_who_has_the_database_alone_can_make_no_seal(chain: AuditChain) -> None:
    """A plain hash could be computed anew by whoever alters an entry."""
    content = Content("org_1", "aud_1", None, "code.issued", "user", "u", "completed", "{}", "1.000000", "1.000000")
    other = ChainKey(ENTROPY.take(32))
    assert other.seal(bytes(32), 1, content, "final") != chain.key.seal(bytes(32), 1, content, "final")
    assert other.genesis("org_1") != chain.key.genesis("org_1")


# Tampering. Each alteration is made, verified and rolled back on one connection that may everything.


class Tampering:
    """A chain with entries of every kind, and somebody who may write whatever he likes into the database."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], key: ChainKey, organization_id: str) -> None:
        self.connection = connection
        self.key = key
        self.organization_id = organization_id
        self.entries: list[str] = []
        self.links: list[tuple[int, str, str]] = []

    async def after(self, *statements: tuple[str, Mapping[str, Any]]) -> Verification:
        """What is found when these were carried out; afterwards they never happened."""
        async with self.connection.transaction(force_rollback=True):
            for statement, params in statements:
                await self.connection.execute(statement.encode(), {"org": self.organization_id, **params})
            return await verify(Tx(self.connection), self.key, self.organization_id)

    def named_without(self, position: int) -> str:
        """Which entry is named when the link at `position` is gone: the next one's where its own has another link."""
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
    await write(db, organization_id, name="one")
    requested = await request(db, organization_id)
    await write(db, organization_id, name="three")
    await chain.seal_waiting()
    await finalise(db, organization_id, requested)
    await request(db, organization_id)
    await chain.seal_waiting()
    await write(db, organization_id, name="last")
    await chain.seal_waiting()
    await write(db, organization_id, name="waiting")
    url = cluster.superuser_url_of("core_spare").reveal()
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, options="-c timezone=UTC") as connection:
        await connection.execute("SET session_replication_role = replica")  # Foreign keys are no defence.
        made = Tampering(connection, chain.key, organization_id)
        cursor = await connection.execute("SELECT position, entry_id, stage FROM audit_seals ORDER BY position")
        made.links = await cursor.fetchall()
        assert await made.after() == good(6, unsealed=1)
        assert len(made.links) == 6
        yield made


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
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
# Every column of every entry and every link, and of the head: found in the database, so that a new one is tried too.
COLUMNS = """
    SELECT column_name, data_type, is_nullable = 'YES'
      FROM information_schema.columns
     WHERE table_name = %(table)s
     ORDER BY ordinal_position
"""


@pytest.mark.parametrize("table", ["audit_entries", "audit_seals", "audit_heads"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_whatever_is_altered_is_found_and_named(tampering: Tampering, table: str, data: st.DataObject) -> None:
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
        named = {value}  # What it is called now.
    elif (table, name) == ("audit_seals", "organization_id"):
        named = {tampering.named_without(position)}
    elif (table, name) == ("audit_seals", "entry_id"):
        named = {affected, value}  # The entry that lost its seal, or the one that got another's.
    assert found.first_broken in named


async def test_every_deleted_entry_is_found_and_named(tampering: Tampering) -> None:
    for entry_id in tampering.sealed:
        found = await tampering.after(("DELETE FROM audit_entries WHERE id = %(id)s", {"id": entry_id}))
        assert found == broken(entry_id, entries=5, unsealed=1)


async def test_every_removed_seal_is_found_and_named(tampering: Tampering) -> None:
    """Where an entry keeps its last seal, only that something is missing can be told, and before which one."""
    for position, _, _ in tampering.links:
        found = await tampering.after(("DELETE FROM audit_seals WHERE position = %(p)s", {"p": position}))
        assert found == broken(tampering.named_without(position), entries=6, unsealed=1)


async def test_every_two_that_changed_places_are_found(tampering: Tampering) -> None:
    swap = """
        UPDATE audit_seals SET position = CASE position WHEN %(a)s THEN %(b)s + 1000 ELSE %(a)s + 1000 END
         WHERE position IN (%(a)s, %(b)s)
    """
    back = "UPDATE audit_seals SET position = position - 1000 WHERE position > 1000"
    for a, b in combinations(range(1, 7), 2):
        found = await tampering.after((swap, {"a": a, "b": b}), (back, {}))
        # The first place that does not hold is where the later one stands now.
        assert found == broken(tampering.links[b - 1][1], entries=6, unsealed=1)


INSERTED = """
    INSERT INTO audit_entries SELECT organization_id, 'aud_forged', project_id, action, actor_type, actor_id, outcome,
           metadata, %(at)s::timestamptz, finalised_at FROM audit_entries WHERE organization_id = %(org)s LIMIT 1
"""


@pytest.mark.parametrize("at", ["2020-01-01Z", "2026-11-20 10:00Z", "2999-01-01Z"])
async def test_an_inserted_entry_is_found_and_named(tampering: Tampering, at: str) -> None:
    assert await tampering.after((INSERTED, {"at": at})) == broken("aud_forged", entries=7, unsealed=1)


@pytest.mark.parametrize("position", [7, 8, 2**63 - 1])
async def test_a_forged_seal_does_not_hide_an_inserted_entry(tampering: Tampering, position: int) -> None:
    seal = "INSERT INTO audit_seals VALUES (%(org)s, %(position)s, 'aud_forged', 'final', %(seal)s)"
    head = "UPDATE audit_heads SET position = %(position)s, entry_id = 'aud_forged', seal = %(seal)s"
    params = {"position": position, "seal": bytes(32)}
    found = await tampering.after((INSERTED, {"at": "2026-11-20Z"}), (seal, params), (head, params))
    assert found == broken("aud_forged", entries=7, unsealed=1)


async def test_no_seal_stands_before_the_beginning(tampering: Tampering) -> None:
    """It would be outside of what is walked, and still count as the seal of its entry."""
    seal = "INSERT INTO audit_seals VALUES (%(org)s, 0, 'aud_forged', 'final', '')"
    with pytest.raises(psycopg.errors.CheckViolation):
        await tampering.after((seal, {}))
    allow = "ALTER TABLE audit_seals DROP CONSTRAINT audit_seals_position_check"
    found = await tampering.after((INSERTED, {"at": "2026-11-20Z"}), (allow, {}), (seal, {}))
    assert found == broken("aud_forged", entries=7, unsealed=1)


async def test_a_tail_that_was_cut_off_is_found(tampering: Tampering) -> None:
    """The head knows the last entry that there was."""
    last = tampering.links[-1][1]
    for kept in range(6):
        seals = ("DELETE FROM audit_seals WHERE position > %(kept)s", {"kept": kept})
        kept_ids = [entry_id for _, entry_id, _ in tampering.links[:kept]]
        entries = ("DELETE FROM audit_entries WHERE NOT id = ANY(%(ids)s)", {"ids": kept_ids})
        notes = ("DELETE FROM audit_unsealed", {})
        found = await tampering.after(seals, entries, notes)
        # Where an entry stays that was finalised in what is gone, its missing seal is the first thing to see.
        assert found.first_broken == last or found.first_broken in kept_ids
        assert not found.is_verified
    removed = await tampering.after(("DELETE FROM audit_heads", {}))
    assert removed == broken(last, entries=6, unsealed=1)


async def test_everything_gone_but_the_entries_is_found(tampering: Tampering) -> None:
    wiped = [(f"DELETE FROM {table}", {}) for table in ("audit_seals", "audit_heads", "audit_unsealed")]
    found = await tampering.after(*wiped)
    assert (found.is_verified, found.entries) == (False, 6)
    assert found.first_broken is not None


async def test_a_waiting_entry_that_lost_its_note_is_found(tampering: Tampering) -> None:
    found = await tampering.after(("DELETE FROM audit_unsealed", {}))
    assert not found.is_verified
    assert found.first_broken not in {None, *tampering.sealed}


async def test_one_organisation_s_chain_is_none_of_another(tampering: Tampering, db: Database) -> None:
    """All of it moved, seals and head and all."""
    other = await given_organization(db)
    moved = [
        (f"UPDATE {table} SET organization_id = %(other)s", {"other": other})
        for table in ("audit_entries", "audit_seals", "audit_heads", "audit_unsealed")
    ]
    tampering.organization_id = other
    assert await tampering.after(*moved) == broken(tampering.links[0][1], entries=6, unsealed=1)


# What is sealed.


@given(fields=st.lists(st.one_of(st.none(), TEXTS, st.integers(0, 2**53 - 1))))
def test_what_is_sealed_is_canonical_json(fields: list[str | int | None]) -> None:
    """RFC 8785, so that anybody who is given the key can check a seal with the tools at hand."""
    assert _canonical(fields) == canonicalize(fields)
    assert json.loads(_canonical(fields)) == fields
