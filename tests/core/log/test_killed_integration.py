"""A worker in a process of its own, which lets the log grow, and is killed in each phase of it."""

from typing import Final

import pytest
from support.database.rival import Rival
from support.log.stored_log import StoredLog
from support.log.witnesses import TheirWitness
from support.processes.fake_clock import FakeClock
from support.processes.killable import Killable
from support.tenancy.tenant import Tenant

from .conftest import Integrators
from .test_integration import queue_entries

PUBLISHED: Final = (
    "SELECT count(*) FROM log_leaves WHERE strpos(convert_from(entry, 'UTF8'), '{}') > 0"
    " AND position < (SELECT max(size) FROM log_checkpoints WHERE published_at IS NOT NULL)"
)


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


@pytest.mark.parametrize("table", ["log_leaves", "log_tiles", "log_checkpoints", "log_state"])
async def test_a_worker_that_is_killed_while_it_integrates_leaves_nothing_or_all(
    killable: Killable, integrators: Integrators, stored: StoredLog, rival: Rival, table: str
) -> None:
    async with killable.worker() as worker, worker.dying_while(rival, f"LOCK TABLE {table} IN SHARE MODE"):
        await queue_entries(rival, 3)
    assert await stored.audit() == 2
    assert len(await rival.rows("SELECT content FROM log_queue")) == 3
    assert await integrators().integrate_once() == 3
    assert await stored.audit() == 5


async def test_a_worker_that_is_killed_while_a_witness_answers_is_continued(
    killable: Killable,
    integrators: Integrators,
    witnesses: list[TheirWitness],
    stored: StoredLog,
    rival: Rival,
    clock: FakeClock,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The checkpoint was stored before it was sent; the witness cosigns the same bytes again."""
    file = tmp_path_factory.mktemp("witnesses") / "witnesses"
    witness = witnesses[0]
    file.write_text(f"# ours\n\n{witness.ours.key} {witness.ours.url}  # the only one\n")
    witness.goes_on.clear()
    async with killable.worker(transparency_witnesses=str(file), transparency_quorum="1") as worker:
        await queue_entries(rival, 3)
        await rival.until_rows(
            "SELECT size, asked_at IS NOT NULL FROM log_checkpoints ORDER BY size DESC LIMIT 1", (5, True)
        )
        assert (await stored.published()).size == 2
        worker.kill()
    witness.goes_on.set()
    before = await stored.newest()
    clock.advance(seconds=11)
    await integrators(witness.ours, quorum=1).ask_once()
    assert await stored.published() == before
    assert witness.size(stored.origin) == 5
