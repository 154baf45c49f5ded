"""A worker in a process of its own, which lets the log grow, and is killed in each phase of it."""

import re
from collections import Counter
from collections.abc import Awaitable
from typing import Any, Final, LiteralString

import pytest
from support.database.rival import COMMITTING, Rival
from support.log.stored_log import StoredLog
from support.processes.killable import Killable, kill_while_waiting
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.log.integration import sequencing
from soundmark.core.features.log.integration.opening import renew_log
from soundmark.kit.postgres.transaction import Tx

from .conftest import Integrators
from .test_integration import queue_entries
from .test_log_queue import entry_of

PUBLISHED: Final = (
    "SELECT count(*) FROM log_leaves WHERE strpos(convert_from(entry, 'UTF8'), '{}') > 0"
    " AND position < (SELECT max(size) FROM log_checkpoints WHERE published_at IS NOT NULL)"
)
# Each statement that writes, in the order in which the transaction executes them, and the lock that it waits for.
PHASES: Final = {
    "DELETE FROM log_queue": "LOCK TABLE log_queue IN SHARE MODE",
    "COPY log_leaves": "LOCK TABLE log_leaves IN SHARE MODE",
    "INSERT INTO log_tiles": "LOCK TABLE log_tiles IN SHARE MODE",
    "INSERT INTO log_checkpoints": "LOCK TABLE log_checkpoints IN SHARE MODE",
    "DELETE FROM log_checkpoints": "SELECT FROM log_checkpoints FOR UPDATE",
    "UPDATE log_state": "LOCK TABLE log_state IN SHARE MODE",
}
LOCKS: Final = {"FOR NO KEY UPDATE": "SELECT FROM log_state FOR UPDATE", **PHASES}


async def list_writes(monkeypatch: pytest.MonkeyPatch, work: Awaitable[Any]) -> list[str]:
    """Do the work, and return the beginning of each statement of it that writes."""
    statements = list[str]()

    def record(name: str) -> None:
        execute = getattr(Tx, name)

        async def recorded(tx: Tx, statement: LiteralString, *params: Any) -> Any:
            statements.append(statement)
            return await execute(tx, statement, *params)

        monkeypatch.setattr(Tx, name, recorded)

    for name in ("run", "rows", "value", "copy"):
        record(name)
    await work
    pattern = re.compile(r"((?:INSERT INTO|COPY|DELETE FROM|(?<!DO )UPDATE|TRUNCATE) [a-z_]+)")
    return [found for statement in statements for found in pattern.findall(statement)]


async def test_a_worker_is_woken_by_what_others_commit(
    killable: Killable, tenant: Tenant, stored: StoredLog, rival: Rival
) -> None:
    """The Core that issues notifies it a moment later; an operator's command does so itself."""
    async with killable.worker():
        await rival.until_rows("SELECT 1 FROM pg_stat_activity WHERE query = 'LISTEN \"log_queue\"'", (1,))
        code = await tenant.make_code()
        await rival.until_rows(PUBLISHED.format("code.issued"), (1,))
        await tenant.revoke(code["xr_id"])
        await rival.until_rows(PUBLISHED.format("code.revoked"), (1,))
    assert await stored.audit() >= 4, "the heads of audit chains enter it too"


async def test_each_statement_that_writes_is_a_phase(
    ctx: Context, stored: StoredLog, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue_entries(rival, 3)
    assert await list_writes(monkeypatch, sequencing.integrate_some(ctx)) == list(PHASES)
    assert await stored.audit() == 5


@pytest.mark.parametrize("phase", LOCKS)
async def test_a_worker_that_is_killed_while_it_integrates_leaves_nothing(
    killable: Killable, integrators: Integrators, stored: StoredLog, rival: Rival, phase: str
) -> None:
    """What it has signed in the transaction, nobody has seen: the next worker may choose another order."""
    entries, before = await queue_entries(rival, 600), await stored.published()
    await kill_while_waiting(rival, LOCKS[phase], killable.worker())
    assert await stored.audit(before) == 2
    assert len(await rival.rows("SELECT content FROM log_queue")) == 600
    assert await integrators().integrate_once() == 600
    assert await stored.audit(before) == (await stored.published()).size == 602
    assert Counter((await stored.entries())[2:]) == Counter(entries)


async def test_a_worker_that_is_killed_in_its_commit_has_integrated_all(
    killable: Killable, stored: StoredLog, rival: Rival
) -> None:
    """It never learns of it. The next worker neither repeats it nor signs another root of that size."""
    first = await stored.published()
    entries = await queue_entries(rival, 600)
    async with rival.pausing_commits("UPDATE ON log_state"):
        await kill_while_waiting(rival, COMMITTING, killable.worker())
    before = await stored.published()
    assert await stored.audit(first) == before.size == 602
    async with killable.worker():
        entries += await queue_entries(rival, 3, "more")
        await rival.until_rows("SELECT size FROM log_checkpoints WHERE published_at IS NOT NULL", (605,))
    assert await stored.audit(first, before) == 605
    assert set(entries) < set(await stored.entries())


async def test_a_worker_that_is_killed_while_it_enters_earlier_codes_is_continued(
    ctx: Context, tenant: Tenant, killable: Killable, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Codes from before the log take several steps: one is killed after the first, and one within the second."""
    codes = [await tenant.make_code() for _ in range(5)]
    await rival.run("DELETE FROM log_queue")
    with monkeypatch.context() as patch:
        patch.setattr(sequencing, "ENTRIES_AT_ONCE", 2)
        await renew_log(ctx, "renewed.example/v1/log")
    stored = await StoredLog.read(rival)
    before = await stored.published()
    assert before.size == 4, "two events of the key, and two Codes"
    await kill_while_waiting(rival, PHASES["COPY log_leaves"], killable.worker())
    assert await stored.audit() == 4
    async with killable.worker():
        await rival.until_rows("SELECT 1 FROM log_state WHERE entered_token IS NOT NULL")
    assert await stored.audit(before) == (await stored.published()).size >= 7, "heads of audit chains enter it too"
    assert {entry_of(code) for code in codes} < set(await stored.entries())
