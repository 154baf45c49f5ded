"""Two workers, each a process of its own, let one log grow while Codes are issued: one sequence, however they meet."""

import asyncio
import contextlib
from collections import Counter
from typing import Any, Final

from support.database.rival import Rival
from support.log.stored_log import StoredLog
from support.processes.killable import Killable
from support.tenancy.tenant import Tenant

from soundmark.core.domain.log.entry import read_entry

from .test_killed_integration import PHASES
from .test_log_queue import entry_of, make_batch

_ROUNDS: Final = 5
_BATCH: Final = 100


async def issue(tenant: Tenant, rounds: int) -> list[dict[str, Any]]:
    """Issue batches and single Codes, one after the other; revoke one of each batch."""
    codes = list[dict[str, Any]]()
    for _ in range(rounds):
        codes += [*await make_batch(tenant, _BATCH), await tenant.make_code()]
        await tenant.revoke(codes[-1]["xr_id"])
    return codes


async def until_logged(rival: Rival) -> None:
    await rival.until_rows("SELECT 1 FROM log_queue")


async def require_entries(stored: StoredLog, codes: list[dict[str, Any]], *earlier: Any) -> None:
    """The log has the commitments to each Code and to each revocation once, and extends the earlier checkpoints."""
    size = await stored.audit(*earlier)
    assert (await stored.published()).size == size
    found = [entry for entry in await stored.entries() if read_entry(entry).kind.startswith("code.")]
    revoked = codes[_BATCH :: _BATCH + 1]
    assert Counter(found) == Counter([*map(entry_of, codes), *(entry_of(code, revoked=True) for code in revoked)])


async def test_two_workers_that_integrate_at_once_make_one_sequence(
    killable: Killable, tenant: Tenant, stored: StoredLog, rival: Rival
) -> None:
    """In each round both want the log at the same moment, while the next Codes are being issued."""
    await tenant.make_quota(rival, 2 * _ROUNDS * (_BATCH + 1))
    checkpoints, codes = [await stored.published()], list[dict[str, Any]]()
    async with killable.worker(), killable.worker():
        for _ in range(_ROUNDS):
            async with rival.holding("SELECT FROM log_state FOR UPDATE"):
                issuing = asyncio.create_task(issue(tenant, 2))
                await rival.until_someone_waits(2)
            codes += await issuing
            checkpoints.append(await stored.published())
        await until_logged(rival)
    await require_entries(stored, codes, *checkpoints)


async def test_a_worker_goes_on_when_the_one_that_has_the_log_is_killed(
    killable: Killable, tenant: Tenant, stored: StoredLog, rival: Rival
) -> None:
    await tenant.make_quota(rival, 2 * (_BATCH + 1))
    before = await stored.published()
    async with killable.worker() as first, contextlib.AsyncExitStack() as stack:
        async with rival.holding(PHASES["INSERT INTO log_tiles"]):
            codes = await issue(tenant, 1)
            await rival.until_someone_waits()
            await stack.enter_async_context(killable.worker())
            await rival.until_someone_waits(2)
            first.kill()
            codes += await issue(tenant, 1)
        await until_logged(rival)
    await require_entries(stored, codes, before)
