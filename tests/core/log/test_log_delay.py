"""What is answered is in a published checkpoint at most five seconds later, while Codes are issued all the time."""

import asyncio
import time
from typing import Any, Final

from support.database.rival import Rival
from support.processes.killable import Killable
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.log.entry import read_entry

from .test_log_queue import entry_of, make_batch

# Contract, details, question 12. An idle machine takes some two.
DELAY_MAX_S: Final = 5.0
_FOR_S: Final = 6.0
_STEPS: Final = 4  # Waking, taking, inserting, committing.
_SINGLE_EVERY_S: Final = 0.2
_BATCH: Final = 100  # The most in one request.
_BATCHES: Final = 10
_BATCHES_EVERY_S: Final = 2.0
_PUBLISHED: Final = "SELECT size FROM log_checkpoints WHERE published_at IS NOT NULL"

Answered = list[tuple[float, dict[str, Any]]]


async def issue(tenant: Tenant, batches: int, every_s: float) -> Answered:
    """Issue so many batches, or with 0 a single Code, at a steady rate; return each Code and when it was answered."""
    answered, begun_s = Answered(), time.monotonic()
    while time.monotonic() < begun_s + _FOR_S:
        for _ in range(batches or 1):
            codes = await make_batch(tenant, _BATCH) if batches else [await tenant.make_code()]
            answered += [(time.monotonic(), code) for code in codes]
        await asyncio.sleep(every_s)
    return answered


async def watch(rival: Rival, seen: list[tuple[float, int]], looks_s: list[float]) -> None:
    """Note each size of the published tree and when it was first seen, and how long each look took."""
    while True:
        begun_s = time.monotonic()
        ((size,),) = await rival.rows(_PUBLISHED)
        if not seen or size > seen[-1][1]:
            seen.append((time.monotonic(), size))
        await asyncio.sleep(0.05)
        looks_s.append(time.monotonic() - begun_s)


async def test_what_is_issued_at_a_steady_rate_is_published_within_five_seconds(
    ctx: Context, killable: Killable, tenant: Tenant, rival: Rival
) -> None:
    assert ctx is not None, "it makes the log"
    await tenant.make_quota(rival, 10_000)
    seen, looks_s = list[tuple[float, int]](), list[float]()
    async with killable.worker(), asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch(rival, seen, looks_s))
        issuing = [issue(tenant, 0, _SINGLE_EVERY_S), issue(tenant, _BATCHES, _BATCHES_EVERY_S)]
        answered = [each for found in await asyncio.gather(*issuing) for each in found]
        await rival.until_rows("SELECT 1 FROM log_queue")
        ((size,),) = await rival.rows("SELECT size FROM log_state")
        while seen[-1][1] < size:  # noqa: ASYNC110 - the event happens in PostgreSQL
            await asyncio.sleep(0.05)
        watching.cancel()
    digests = await rival.rows("SELECT digest, position FROM log_leaves")
    positions = {bytes(digest): position for digest, position in digests}
    delays_s = [
        next(at_s for at_s, size in seen if size > positions[read_entry(entry_of(code)).digests[0]]) - answered_s
        for answered_s, code in answered
    ]
    assert len(answered) > _BATCHES * _BATCH
    # Other tests on the same cores delay a look, and each of the worker's steps as much.
    slack_s = _STEPS * max(looks_s)
    assert max(delays_s) <= DELAY_MAX_S + slack_s, f"{max(delays_s):.1f} s, looks took up to {max(looks_s):.1f} s"
