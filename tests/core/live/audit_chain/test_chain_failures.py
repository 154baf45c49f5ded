"""Sealers that die, fail and stop, and a chain that somebody has broken."""

import asyncio
import contextlib
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.audit_entries import broken_at, intact, make_organization, open_chain, verify_chain, write_entry

from soundmark.core.live import audit_chain as audit_chain_module
from soundmark.core.live.audit_chain import AuditChain, ChainBroken
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.tasks import cancel_and_wait


async def test_a_sealer_that_dies_in_the_middle_changes_nothing(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival
) -> None:
    await write_entry(db, organization_id)
    await chain.seal_waiting()
    second = await write_entry(db, organization_id)
    state = "SELECT (SELECT count(*) FROM audit_seals), (SELECT max(position) FROM audit_heads)"
    async with rival.holding("LOCK TABLE audit_unsealed IN EXCLUSIVE MODE"):
        # Its seals are inserted, and it is about to remove the entry from the waiting list.
        sealing = await rival.while_waiting(chain.seal_waiting())
        await rival.kill_waiting_sessions()
        with pytest.raises(DatabaseUnavailable):
            await sealing
        assert await rival.rows(state) == [(1, 1)]
        assert await verify_chain(db, chain, organization_id) == intact(2, unsealed=1)
    await chain.seal_waiting()
    assert await verify_chain(db, chain, organization_id) == intact(2)
    assert await rival.rows("SELECT position FROM audit_seals WHERE entry_id = %s", second) == [(2,)]


async def test_a_leftover_note_is_removed(db: Database, chain: AuditChain, organization_id: str, rival: Rival) -> None:
    """An entry is sealed once at each stage, whichever sealer tries again."""
    entry_id = await write_entry(db, organization_id)
    await chain.seal_waiting()
    await rival.run("INSERT INTO audit_unsealed VALUES (%s, %s, 'final', now())", organization_id, entry_id)
    await write_entry(db, organization_id)
    await chain.seal_waiting()
    assert await verify_chain(db, chain, organization_id) == intact(2)


async def test_nothing_is_sealed_on_top_of_a_broken_end(
    db: Database, chain: AuditChain, organization_id: str, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries of other organisations are sealed, and the fault is logged once, not in each round."""
    monkeypatch.setattr(audit_chain_module, "SEAL_EVERY_S", 0.0)
    first = await write_entry(db, organization_id)
    await chain.seal_waiting()
    await rival.run("UPDATE audit_heads SET seal = decode(repeat('00', 32), 'hex')")
    await write_entry(db, organization_id)
    other = await make_organization(db)
    with capture_logs() as logged:
        sealing = asyncio.create_task(chain.keep_sealing())
        for _ in range(3):
            await write_entry(db, other)
            async with asyncio.timeout(60):
                while (await verify_chain(db, chain, other)).unsealed:
                    pass
        await cancel_and_wait(sealing)
    assert [(line["event"], line["organization_id"], line["error"]) for line in logged] == [
        ("audit_entries_not_sealed", organization_id, ChainBroken.__name__)
    ]
    assert await verify_chain(db, chain, organization_id) == broken_at(first, entries=2, unsealed=1)


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
    sealing: asyncio.Task[None] | None = None

    async def list_waiting_tenants(*arguments: Any, **options: Any) -> list[str]:
        nonlocal rounds
        if asyncio.current_task() is not sealing:
            return await genuine(*arguments, **options)  # The shared Core seals concurrently with the test.
        rounds += 1
        if rounds < 4:
            raise failure
        failed.set()
        return await genuine(*arguments, **options)

    monkeypatch.setattr(audit_chain_module.audit_chain, "list_waiting_tenants", list_waiting_tenants)
    await write_entry(db, organization_id)
    with capture_logs() as logged:
        sealing = asyncio.create_task(chain.keep_sealing())
        async with asyncio.timeout(60):
            await failed.wait()
            while (await verify_chain(db, chain, organization_id)).unsealed:
                pass
        await cancel_and_wait(sealing)
    expected = [] if isinstance(failure, DatabaseUnavailable) else ["RuntimeError"]
    assert [line["error"] for line in logged] == expected


async def test_sealing_has_ended_when_the_app_has_stopped(
    spare_database_url: Secret, db: Database, rival: Rival
) -> None:
    """When stopped in the middle, it leaves neither a task nor a half-sealed entry behind."""
    before = asyncio.all_tasks()
    async with contextlib.AsyncExitStack() as held:
        async with running_core(core_settings(spare_database_url)):
            organization_id = await make_organization(db)
            await write_entry(db, organization_id)
            await held.enter_async_context(rival.holding("LOCK TABLE audit_unsealed IN EXCLUSIVE MODE"))
            await rival.until_someone_waits()
            chain = await open_chain(db)
        assert "audit-chain" not in {task.get_name() for task in asyncio.all_tasks() - before}
        assert await verify_chain(db, chain, organization_id) == intact(1, unsealed=1)
