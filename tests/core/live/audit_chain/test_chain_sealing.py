"""The audit chain: any process seals it, it has no gaps whoever writes, and nobody waits for it."""

import asyncio
import contextlib

import pytest
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.audit_entries import (
    broken_at,
    finalise_entry,
    intact,
    make_organization,
    open_chain,
    verify_chain,
    write_entry,
    write_requested_entry,
)
from support.tenancy.tenant import make_tenant

from soundmark.core.features.tenancy.audit_log import verification
from soundmark.core.live import audit_chain as audit_chain_module
from soundmark.core.live.audit_chain import AuditChain
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database
from soundmark.kit.tasks import cancel_and_wait


async def test_entries_are_sealed_after_their_commit(db: Database, chain: AuditChain, organization_id: str) -> None:
    assert await verify_chain(db, chain, organization_id) == intact(0)
    for _ in range(3):
        await write_entry(db, organization_id)
    assert await verify_chain(db, chain, organization_id) == intact(3, unsealed=3)
    await chain.seal_waiting()
    assert await verify_chain(db, chain, organization_id) == intact(3)
    await write_entry(db, organization_id)
    assert await verify_chain(db, chain, organization_id) == intact(4, unsealed=1)
    await chain.seal_waiting()
    assert await verify_chain(db, chain, organization_id) == intact(4)


async def test_more_entries_than_one_round_seals_are_sealed(
    db: Database, chain: AuditChain, organization_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain is verified in pieces that are smaller than the chain."""
    monkeypatch.setattr(audit_chain_module, "SEALED_AT_ONCE", 2)
    monkeypatch.setattr(audit_chain_module, "_TENANTS_AT_ONCE", 1)
    monkeypatch.setattr(verification, "_LINKS_AT_ONCE", 2)
    others = [await make_organization(db) for _ in range(3)]
    for number in range(4):
        for each in (organization_id, *others[: number + 1]):
            await write_entry(db, each)
    await chain.seal_waiting()
    assert await verify_chain(db, chain, organization_id) == intact(4)
    assert [(await verify_chain(db, chain, other)).unsealed for other in others] == [0, 0, 0]


async def test_an_entry_is_sealed_when_it_is_written_and_when_it_is_finalised(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival
) -> None:
    """Whether or not the first seal came before the finalisation."""
    early = await write_requested_entry(db, organization_id)
    await chain.seal_waiting()
    late = await write_requested_entry(db, organization_id)
    await finalise_entry(db, organization_id, late)
    await finalise_entry(db, organization_id, early, "completed")
    assert await verify_chain(db, chain, organization_id) == intact(2, unsealed=2)
    await chain.seal_waiting()
    assert await verify_chain(db, chain, organization_id) == intact(2)
    rows = await rival.rows("SELECT position, entry_id, stage FROM audit_seals ORDER BY position")
    assert rows[0] == (1, early, "requested")
    assert [stage for _, entry_id, stage in rows if entry_id == late] == ["requested", "final"]
    assert len(rows) == 4


async def test_a_round_reads_as_much_of_a_long_chain_as_of_a_short_one(
    spare_database_url: Secret, db: Database, organization_id: str, rival: Rival
) -> None:
    """PostgreSQL planned the statements while the tables were empty, and keeps these plans for a while.

    Index entries of deleted notes are left out: how soon PostgreSQL drops them depends on its other sessions.
    """
    sealed = "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'audit_seals'"
    read = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ('audit_entries', 'audit_seals')"
    ((sealed_before,),) = await rival.rows(sealed)  # By the tests before this one, which had the same database.
    ((read_before,),) = await rival.rows(read)
    sealer = Database(spare_database_url, pool_size=1, application_name="tests")
    await sealer.open()
    chain = await open_chain(sealer)
    for _ in range(150):
        await write_entry(db, organization_id)
        await chain.seal_waiting()
    await sealer.close()  # Its sessions end, and report what they have read.
    await rival.until_rows(f"SELECT ({sealed}) >= {sealed_before + 150}", (True,))
    ((read_after,),) = await rival.rows(read)
    # The sealer reads two; the note's foreign key reads one, which is counted when the writer's session reports it.
    read_each_round = (read_after - read_before) / 150
    assert read_each_round < 4


async def test_a_finalised_entry_is_not_rewritten(db: Database, chain: AuditChain, organization_id: str) -> None:
    entry_id = await write_requested_entry(db, organization_id)
    await finalise_entry(db, organization_id, entry_id)
    await chain.seal_waiting()
    async with db.transaction(tenant=organization_id) as tx:
        await tx.run("UPDATE audit_entries SET outcome = 'completed'")
    assert await verify_chain(db, chain, organization_id) == broken_at(entry_id, entries=1)


async def test_sealing_does_not_wait_for_a_deletion_of_entries(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival
) -> None:
    """The deletion may already wait for a note that this sealing locks. This one is rolled back."""
    deleted, kept = [await write_entry(db, organization_id) for _ in range(2)]
    async with rival.holding("DELETE FROM audit_entries WHERE id = %s", deleted):
        async with asyncio.timeout(10):
            await chain.seal_waiting()
        assert await rival.rows("SELECT entry_id FROM audit_unsealed") == [(deleted,)]
        seals = await rival.rows("SELECT entry_id FROM audit_seals ORDER BY position")
        assert {entry_id for (entry_id,) in seals} == {deleted, kept}
    await chain.seal_waiting()
    assert await rival.rows("SELECT entry_id FROM audit_unsealed") == []
    assert await rival.rows("SELECT entry_id FROM audit_seals ORDER BY position") == seals
    assert await verify_chain(db, chain, organization_id) == intact(2)


async def test_many_writers_and_several_sealers_make_one_unbroken_chain(
    db: Database, spare_database_url: Secret, organization_id: str, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sealer works as in its own process, with its own connections, all of them at the same time."""
    monkeypatch.setattr(audit_chain_module, "SEAL_EVERY_S", 0.0)
    monkeypatch.setattr(audit_chain_module, "SEALED_AT_ONCE", 7)

    async def writer() -> None:
        for number in range(20):
            await write_entry(db, organization_id, number=number)

    async with contextlib.AsyncExitStack() as stack:
        chains = []
        for _ in range(3):
            process = Database(spare_database_url, pool_size=2, application_name="tests")
            await process.open()
            stack.push_async_callback(process.close)
            chains.append(await open_chain(process))
            stack.push_async_callback(cancel_and_wait, asyncio.create_task(chains[-1].keep_sealing()))
        await asyncio.gather(*[writer() for _ in range(10)])
        async with asyncio.timeout(60):
            while (found := await verify_chain(db, chains[0], organization_id)).unsealed:
                assert found.is_verified
        assert found == intact(200)
    rows = await rival.rows("SELECT position FROM audit_seals ORDER BY position")
    assert [position for (position,) in rows] == list(range(1, 201))
    assert await rival.rows("SELECT position FROM audit_heads") == [(200,)]


async def test_two_cores_seal_the_entries_of_either(database_url: Secret, api: Api, audio_url: str) -> None:
    """As in production, through their public API."""
    async with running_core(core_settings(database_url, audio_url=audio_url), api.clock) as other:
        tenant = await make_tenant(api)
        names = [f"Project {number}" for number in range(24)]
        await asyncio.gather(
            *[(api, other)[number % 2].make_project(tenant.organization_id, name) for number, name in enumerate(names)]
        )
        async with asyncio.timeout(60):
            while True:
                answer = await other.get("/v1/audit-log/verification", params=tenant.query)
                assert answer.json["verified"]
                if answer.json["unsealed"] == 0:
                    break
    assert answer.json == {"verified": True, "entries": 26, "unsealed": 0, "first_broken": None, "logged_head": None}


async def test_a_process_seals_its_own_entries_and_seldom_asks_about_all(
    db: Database, chain: AuditChain, organization_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks about all organisations once, at its start; after that it knows whose entries it wrote."""
    monkeypatch.setattr(audit_chain_module, "SEAL_EVERY_S", 0.0)
    monkeypatch.setattr(audit_chain_module, "_SWEEP_EVERY_S", 1_000_000)
    genuine, swept, sweeps = chain.seal_waiting, asyncio.Event(), []

    async def seal_waiting() -> None:
        await genuine()
        sweeps.append("swept")
        swept.set()

    monkeypatch.setattr(chain, "seal_waiting", seal_waiting)
    sealing = asyncio.create_task(chain.keep_sealing())
    async with asyncio.timeout(60):
        await swept.wait()
        other = await make_organization(db)
        for each in (organization_id, other, organization_id):
            await write_entry(db, each)
        for each, count in ((organization_id, 2), (other, 1)):
            while await verify_chain(db, chain, each) != intact(count):
                pass
    await cancel_and_wait(sealing)
    assert sweeps == ["swept"]


async def test_an_entry_held_by_another_process_is_sealed_afterwards(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival
) -> None:
    """The other process may have listed its entries before our commit, so ours is not left to the next sweep."""
    await write_entry(db, organization_id)
    await chain.seal_waiting()
    async with rival.holding("SELECT FROM audit_heads FOR UPDATE"):
        await write_entry(db, organization_id)
        await chain.seal_waiting()
        assert await verify_chain(db, chain, organization_id) == intact(2, unsealed=1)
    await chain._seal_announced()
    assert await verify_chain(db, chain, organization_id) == intact(2)


def test_an_entry_is_sealed_within_a_second() -> None:
    """A sealer looks often enough that one more round would still be in time."""
    assert audit_chain_module.SEAL_EVERY_S * 2 < 1


# The sessions that wait, and the sessions that they wait for.


async def test_a_writer_waits_for_no_other_and_for_no_sealer(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival
) -> None:
    first = await write_entry(db, organization_id)
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
        second = await asyncio.wait_for(write_entry(db, organization_id), 20)
        # The sealer does not wait either; the head is locked by another, so there is nothing to do.
        await asyncio.wait_for(chain.seal_waiting(), 20)
        assert await verify_chain(db, chain, organization_id) == intact(2, unsealed=1)
    await chain.seal_waiting()
    assert await verify_chain(db, chain, organization_id) == intact(3)
    rows = await rival.rows("SELECT entry_id FROM audit_seals ORDER BY position")
    assert rows[0] == (first,)
    assert {entry_id for (entry_id,) in rows[1:]} == {second, "aud_slow"}


async def test_a_sealer_skips_an_organisation_that_is_being_deleted(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival
) -> None:
    other = await make_organization(db)
    for each in (organization_id, other):
        await write_entry(db, each)
    async with rival.committing("DELETE FROM organizations WHERE id = %s", organization_id):
        await asyncio.wait_for(chain.seal_waiting(), 20)
        assert await verify_chain(db, chain, other) == intact(1)
    for table in ("audit_entries", "audit_unsealed", "audit_seals", "audit_heads"):
        assert await rival.rows(f"SELECT FROM {table} WHERE organization_id = %s", organization_id) == []
    await chain.seal_waiting()
