"""Cores and commands that are killed while they make the log, and workers while they enter heads of audit chains."""

from typing import Final

import httpx2
import pytest
from support.api.core_client import Api
from support.database.rival import COMMITTING, Rival
from support.log.stored_log import StoredLog
from support.processes.killable import Killable, kill_while_waiting, running_core, until_alone
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.domain.log.entry import audit_head_entry
from soundmark.core.features.log.integration import commands
from soundmark.core.features.log.integration.opening import open_log
from soundmark.core.features.tenancy.audit_log.heads import log_heads
from soundmark.kit.crypto.secret import Secret

from .conftest import Integrators
from .test_audit_heads import VERIFICATION, chained
from .test_integration import queue_entries
from .test_killed_integration import PHASES, PUBLISHED, list_writes
from .test_log_queue import entry_of

NO_LOG: Final = "TRUNCATE log_state, log_keys, log_leaves, log_tiles, log_checkpoints, log_queue"
NEW_ORIGIN: Final = "renewed.example/v1/log"
RENEWING: Final = ("log", "renew", "--origin", NEW_ORIGIN)
# The statements that write, in their order, and the lock that each waits for. `PHASES` follow.
MAKING: Final = {
    "INSERT INTO log_state": "LOCK TABLE log_state IN SHARE MODE",
    "INSERT INTO log_keys": "LOCK TABLE log_keys IN SHARE MODE",
    "INSERT INTO log_queue": "LOCK TABLE log_queue IN SHARE MODE",
}
REPLACING: Final = {
    "TRUNCATE log_state": "LOCK TABLE log_tiles IN ACCESS SHARE MODE",
    "INSERT INTO log_queue": MAKING["INSERT INTO log_queue"],
}
ENTERING_HEADS: Final = {
    "DELETE FROM audit_unlogged": "LOCK TABLE audit_unlogged IN SHARE MODE",
    "DELETE FROM audit_logged_heads": "SELECT FROM audit_logged_heads FOR UPDATE",
    "INSERT INTO audit_logged_heads": "LOCK TABLE audit_logged_heads IN SHARE MODE",
    "INSERT INTO log_queue": MAKING["INSERT INTO log_queue"],
}
LOGGING_HEADS: Final = (
    "INSERT INTO procrastinate_jobs (queue_name, task_name, args)"
    " VALUES ('default', 'log_audit_heads', '{\"timestamp\": 0}')"
)


async def test_each_statement_that_writes_is_a_phase(
    ctx: Context, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rival.run(NO_LOG)
    assert await list_writes(monkeypatch, open_log(ctx)) == [*MAKING, *PHASES]


@pytest.mark.parametrize("phase", [*MAKING, "COPY log_leaves"])
async def test_a_core_that_is_killed_while_it_makes_the_log_is_continued_by_the_next(
    ctx: Context, database_url: Secret, rival: Rival, phase: str
) -> None:
    """A log that is made and has no checkpoint keeps its key: nobody has seen another."""
    assert ctx is not None, "nothing else waits in the queue"
    await rival.run(NO_LOG)
    nobody = "http://127.0.0.1:9"
    with running_core(database_url, nobody, must_serve=False) as (_, core):
        async with rival.holding({**PHASES, **MAKING}[phase]):
            await rival.until_someone_waits()
            core.kill()
    await until_alone(rival)
    made = await rival.rows("SELECT id FROM log_keys")
    assert len(made) == (phase not in MAKING)
    assert await rival.rows("SELECT size FROM log_checkpoints") == []
    with running_core(database_url, nobody) as (url, _):
        view = httpx2.get(f"{url}/v1/log").json()
    stored = await StoredLog.read(rival)
    assert (view["size"], view["vkeys"]) == (2, [stored.vkey])
    assert await stored.audit() == (await stored.published()).size == 2
    assert not made or made == [(stored.vkey.split("+")[1],)]


@pytest.mark.parametrize("phase", REPLACING)
async def test_a_renewal_that_is_killed_leaves_the_old_log(
    ctx: Context, killable: Killable, integrators: Integrators, stored: StoredLog, rival: Rival, phase: str
) -> None:
    await queue_entries(rival, 300)
    await integrators().integrate_once()
    await rival.run("UPDATE log_state SET stopped_reason = 'witness_conflict'")
    before = await stored.published()
    await kill_while_waiting(rival, REPLACING[phase], killable.command(*RENEWING))
    assert (await stored.published(), await stored.audit(before)) == (before, 302)
    assert await stored.state() == "witness_conflict"
    await commands.renew(ctx, NEW_ORIGIN)
    assert await (await StoredLog.read(rival)).audit() == 2


async def test_a_renewal_that_is_killed_in_its_commit_is_continued_by_a_worker(
    tenant: Tenant, killable: Killable, stored: StoredLog, rival: Rival
) -> None:
    """The log is made, without a leaf, and the command cannot be repeated."""
    code = await tenant.make_code()
    await rival.run("UPDATE log_state SET stopped_reason = 'tree_damaged'")
    async with rival.pausing_commits("INSERT ON log_state"):
        await kill_while_waiting(rival, COMMITTING, killable.command(*RENEWING))
    assert await rival.rows("SELECT origin, size FROM log_state") == [(NEW_ORIGIN, 0)]
    assert await rival.rows("SELECT size FROM log_checkpoints") == []
    async with killable.worker():
        await rival.until_rows(PUBLISHED.format("code.issued"), (1,))
    renewed = await StoredLog.read(rival)
    assert renewed.vkey != stored.vkey
    assert await renewed.audit() >= 3, "heads of audit chains enter it too"
    assert entry_of(code) in await renewed.entries()


@pytest.fixture
async def grown(core: Api, ctx: Context, integrators: Integrators) -> Tenant:
    """A tenant whose audit chain has grown since its second head was published, which made the first needless."""
    tenant = await make_tenant(core)
    for name in ("one", "two"):
        await core.make_project(tenant.organization_id, name)
        await chained(tenant)
        assert await log_heads(ctx) == 1
        ctx.clock.advance(hours=1)  # type: ignore[attr-defined]  # The clock of tests.
    await integrators().integrate_once()
    await core.make_project(tenant.organization_id, "three")
    await chained(tenant)
    return tenant


async def test_each_statement_that_enters_a_head_is_a_phase(
    ctx: Context, grown: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await list_writes(monkeypatch, log_heads(ctx)) == list(ENTERING_HEADS), grown


@pytest.mark.parametrize("phase", [*ENTERING_HEADS, "COMMIT"])
async def test_a_worker_that_is_killed_while_it_enters_a_head_enters_it_once(
    core: Api, grown: Tenant, killable: Killable, stored: StoredLog, rival: Rival, phase: str
) -> None:
    before, heads = await stored.published(), "SELECT count(*) FROM audit_logged_heads"
    # The integrator waits for the queue too.
    waiting_count = 2 if phase == "INSERT INTO log_queue" else 1
    async with rival.pausing_commits("INSERT ON audit_logged_heads"):
        await rival.run(LOGGING_HEADS)
        lock = {**ENTERING_HEADS, "COMMIT": COMMITTING}[phase]
        await kill_while_waiting(rival, lock, killable.worker(), count=waiting_count)
    assert await rival.rows("SELECT count(*) FROM audit_unlogged") == [(int(phase != "COMMIT"),)]
    assert await rival.rows(heads) == [(2,)], "the first and the second, or those since the second"
    await rival.run("DELETE FROM procrastinate_jobs")
    async with killable.worker():
        await rival.run(LOGGING_HEADS)
        await rival.until_rows(PUBLISHED.format("audit.head"), (3,))
    head = (await core.get(VERIFICATION, params=grown.query)).json["logged_head"]
    assert head["entries"] == await chained(grown)
    assert audit_head_entry(grown.organization_id, **head) in await stored.entries()
    assert await stored.audit(before) == 5
