"""A worker that is killed in each phase of publishing what witnesses cosign, and while the log's key is replaced."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from support.database.rival import COMMITTING, Rival
from support.log.independent import tlog
from support.log.stored_log import StoredLog
from support.log.witnesses import TheirWitness
from support.processes.killable import Killable, kill_while_waiting

from soundmark.core.context import Context
from soundmark.core.features.log.integration.keys import retire_key, rotate_key

from .conftest import Integrators
from .test_integration import queue_entries
from .test_killed_integration import PHASES, list_writes

Asking = Callable[..., dict[str, str]]
PUBLISHED: Final = "SELECT size FROM log_checkpoints WHERE published_at IS NOT NULL"
# The statements of the transaction that publishes, and the lock that each waits for: two leaves are published, of five.
STORING: Final = {
    "DELETE FROM log_checkpoints": "SELECT FROM log_checkpoints WHERE size = 2 FOR UPDATE",
    "UPDATE log_checkpoints": "SELECT FROM log_checkpoints WHERE size = 5 FOR UPDATE",
}
LOCKS: Final = {"FOR NO KEY UPDATE": "SELECT FROM log_state FOR UPDATE", **STORING}


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    """Make the settings of a worker that asks these witnesses and needs one cosignature."""

    def make(*witnesses: TheirWitness) -> dict[str, str]:
        file = tmp_path / "witnesses"
        lines = [f"{witness.ours.key} {witness.ours.url}  # one of ours\n" for witness in witnesses]
        file.write_text("# ours\n\n" + "".join(lines))
        return {"transparency_witnesses": str(file), "transparency_quorum": "1"}

    return make


@pytest.fixture
async def unpublished(integrators: Integrators, witnesses: list[TheirWitness], stored: StoredLog, rival: Rival) -> Any:
    """The checkpoint of five leaves, which is signed, and about which no witness was asked."""
    await queue_entries(rival, 3)
    assert await integrators(witnesses[0].ours, quorum=1).integrate_once() == 3
    return await stored.newest()


async def until_asked(rival: Rival) -> None:
    await rival.until_found("SELECT 1 FROM log_checkpoints WHERE size = 5 AND asked_at IS NOT NULL")


async def restart(killable: Killable, rival: Rival, settings: dict[str, str], until: str) -> None:
    """Run the next worker, ten seconds later, until a query finds a row."""
    await rival.run("UPDATE log_checkpoints SET asked_at = asked_at - interval '11 s'")
    async with killable.worker(**settings):
        await rival.until_found(until)


async def require_published(stored: StoredLog, unpublished: Any, witness: TheirWitness) -> None:
    """The checkpoint is published as it was signed before the worker was killed, and extends the first."""
    assert await stored.published() == await stored.newest() == unpublished
    assert await stored.audit() == witness.size(stored.origin) == 5
    assert await stored.state() is None


async def test_each_statement_that_writes_is_a_phase(
    integrators: Integrators, witnesses: list[TheirWitness], unpublished: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    integrator = integrators(witnesses[0].ours, quorum=1)
    claim = "UPDATE log_checkpoints"
    assert await list_writes(monkeypatch, integrator.ask_once()) == [claim, *STORING], unpublished


async def test_a_worker_that_is_killed_before_it_asks_is_continued(
    killable: Killable,
    witnesses: list[TheirWitness],
    asking: Asking,
    unpublished: Any,
    stored: StoredLog,
    rival: Rival,
) -> None:
    settings = asking(witnesses[0])
    await kill_while_waiting(rival, STORING["UPDATE log_checkpoints"], killable.worker(**settings))
    assert ((await stored.published()).size, witnesses[0].size(stored.origin)) == (2, 0)
    await restart(killable, rival, settings, PUBLISHED + " AND size = 5")
    await require_published(stored, unpublished, witnesses[0])


@pytest.mark.parametrize("phase", ["waiting for the witness", *LOCKS])
async def test_a_worker_that_is_killed_while_it_publishes_is_continued(
    killable: Killable,
    witnesses: list[TheirWitness],
    asking: Asking,
    unpublished: Any,
    stored: StoredLog,
    rival: Rival,
    phase: str,
) -> None:
    """The checkpoint was stored before it was sent; the witness cosigns the same bytes again."""
    settings, witness = asking(witnesses[0]), witnesses[0]
    witness.goes_on.clear()
    async with killable.worker(**settings) as worker:
        await until_asked(rival)
        if phase in LOCKS:
            async with worker.dying_while(rival, LOCKS[phase]):
                witness.goes_on.set()
        worker.kill()
    witness.goes_on.set()
    assert (await stored.published()).size == 2
    await restart(killable, rival, settings, PUBLISHED + " AND size = 5")
    await require_published(stored, unpublished, witness)


async def test_a_worker_that_is_killed_in_its_commit_has_published(
    killable: Killable, witnesses: list[TheirWitness], asking: Asking, unpublished: Any, stored: StoredLog, rival: Rival
) -> None:
    """It never learns of it. The next worker goes on from there."""
    settings = asking(witnesses[0])
    async with rival.pausing_commits("UPDATE OF published_at ON log_checkpoints"):
        await kill_while_waiting(rival, COMMITTING, killable.worker(**settings))
    await require_published(stored, unpublished, witnesses[0])
    await queue_entries(rival, 3, "more")
    await restart(killable, rival, settings, PUBLISHED + " AND size = 8")
    assert await stored.audit(unpublished) == witnesses[0].size(stored.origin) == 8


async def test_a_worker_that_is_killed_while_a_slow_witness_answers_asks_it_again(
    killable: Killable, witnesses: list[TheirWitness], asking: Asking, unpublished: Any, stored: StoredLog, rival: Rival
) -> None:
    """Its cosignature is no part of the quorum, and still belongs to what is published."""
    fast, slow = witnesses[:2]
    settings = asking(fast, slow)
    slow.goes_on.clear()
    async with killable.worker(**settings) as worker:
        await rival.until_found(PUBLISHED + " AND size = 5")
        worker.kill()
    slow.goes_on.set()
    assert await stored.cosigners() == {fast.ours.key.name}
    whole = f"{PUBLISHED} AND strpos(cosignatures, '{slow.ours.key.name}') > 0"
    await restart(killable, rival, settings, whole)
    await require_published(stored, unpublished, slow)
    assert await stored.cosigners() == {fast.ours.key.name, slow.ours.key.name}


async def signers(rival: Rival) -> set[str]:
    """Return the ids of the log's keys that signed the newest checkpoint."""
    ((origin, note),) = await rival.rows(
        "SELECT log_state.origin, note FROM log_state, log_checkpoints ORDER BY log_checkpoints.size DESC LIMIT 1"
    )
    return {bytes(line.key_id).hex() for line in tlog.parse_note(note).signatures if line.name == origin}


async def test_a_worker_that_is_killed_while_it_signs_with_two_keys_is_continued(
    ctx: Context, killable: Killable, stored: StoredLog, rival: Rival
) -> None:
    old, new, before = stored.vkey.split("+")[1], (await rotate_key(ctx)).id.hex(), await stored.published()
    await queue_entries(rival, 3)
    await kill_while_waiting(rival, PHASES["INSERT INTO log_checkpoints"], killable.worker())
    assert await signers(rival) == {old}
    async with killable.worker():
        await rival.until_found(PUBLISHED + " AND size = 5")
    assert await signers(rival) == {old, new}
    assert await stored.audit(before) == 5


async def test_a_key_that_is_retired_while_a_worker_signs_with_it_signs_nothing_after_that(
    ctx: Context, killable: Killable, integrators: Integrators, stored: StoredLog, rival: Rival
) -> None:
    """Retiring waits for the worker, which is killed. The next one signs with the other key alone."""
    old, new = stored.vkey.split("+")[1], (await rotate_key(ctx)).id.hex()
    await queue_entries(rival, 3)
    await integrators().integrate_once()
    before = await stored.published()
    await queue_entries(rival, 3, "more")
    async with rival.holding(PHASES["INSERT INTO log_checkpoints"]), killable.worker() as worker:
        await rival.until_someone_waits()
        retiring = asyncio.create_task(retire_key(ctx, old))
        await rival.until_someone_waits(2)
        worker.kill()
    await retiring
    assert await integrators().integrate_once() == 3
    assert await signers(rival) == {new}
    assert await (await StoredLog.read(rival)).audit(before) == 8


@pytest.mark.parametrize("lock", ["SELECT FROM log_state FOR UPDATE", "LOCK TABLE log_keys IN SHARE MODE"])
async def test_a_command_on_the_keys_that_is_killed_changes_nothing(
    ctx: Context, killable: Killable, integrators: Integrators, stored: StoredLog, rival: Rival, lock: str
) -> None:
    old, known = stored.vkey.split("+")[1], "SELECT id, sealed_seed IS NULL FROM log_keys ORDER BY created_at"
    await kill_while_waiting(rival, lock, killable.command("log", "rotate-key"))
    assert await rival.rows(known) == [(old, False)]
    new = (await rotate_key(ctx)).id.hex()
    await queue_entries(rival, 3)
    await integrators().integrate_once()
    await kill_while_waiting(rival, lock, killable.command("log", "retire-key", old))
    assert set(await rival.rows(known)) == {(old, False), (new, False)}
    await retire_key(ctx, old)
    assert set(await rival.rows(known)) == {(old, True), (new, False)}


async def test_a_command_on_the_keys_that_is_killed_in_its_commit_is_done(
    killable: Killable, integrators: Integrators, stored: StoredLog, rival: Rival
) -> None:
    """Whoever repeats it learns that: a key is retired once, and one key too many signs beside the others."""
    old, keys = stored.vkey.split("+")[1], "SELECT id, sealed_seed IS NULL FROM log_keys ORDER BY created_at"
    async with rival.pausing_commits("INSERT ON log_keys"):
        await kill_while_waiting(rival, COMMITTING, killable.command("log", "rotate-key"))
    ((kept, _), (new, is_retired)) = await rival.rows(keys)
    assert (kept, is_retired) == (old, False)
    await queue_entries(rival, 3)
    await integrators().integrate_once()
    assert await signers(rival) == {old, new}
    async with rival.pausing_commits("UPDATE OF retired_at ON log_keys"):
        await kill_while_waiting(rival, COMMITTING, killable.command("log", "retire-key", old))
    assert await rival.rows(keys) == [(old, True), (new, False)]
    await queue_entries(rival, 3, "more")
    await integrators().integrate_once()
    assert await signers(rival) == {new}
