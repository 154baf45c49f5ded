"""Servers and processes that die, pause and are cut off under load: nothing that was acknowledged is lost.

Two PostgreSQL servers, two Cores with a way to the primary each, Core's worker and Audience. The test itself stands in
for failover software. Every fault happens once, in this order, and then for `FAULTS_S` seconds in an order of the seed;
`make test-faults` has ten minutes.
"""

import asyncio
import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from statistics import median
from typing import Final

import pytest
import structlog
from support.failover.deployment import Deployment, running_deployment
from support.failover.tenant import verify_audit_log, verify_contract

FAULTS_S: Final = float(os.environ.get("FAULTS_S", "0"))
SEED: Final = int(os.environ.get("FAULTS_SEED", "1"))
BACK_WITHIN_S: Final = 5.0
PAUSE_S: Final = 0.05 if FAULTS_S else 0.15  # Of each client after a request; the processor's time is that of requests.

Fault = Callable[[Deployment], Awaitable[None]]

_log: Final = structlog.get_logger()

pytestmark = [pytest.mark.xdist_group("failover"), pytest.mark.timeout(FAULTS_S * 2 + 480)]


async def kill_worker(deployment: Deployment) -> None:
    await deployment.restart_worker()


async def leave_one_core_behind(deployment: Deployment) -> None:
    """The old primary lives, and one Core still reaches it."""
    await asyncio.to_thread(deployment.pair.fail_over)
    await deployment.switch(deployment.routes[1])
    await asyncio.sleep(8)  # Three more than what was revoked may be answered for.
    await deployment.switch()
    await deployment.note_return("leave_one_core_behind")
    await deployment.rejoin()


async def kill_primary(deployment: Deployment) -> None:
    await asyncio.to_thread(deployment.pair.primary.kill)
    await asyncio.sleep(0.5)
    await deployment.fail_over("kill_primary")
    await asyncio.sleep(1)
    await deployment.rejoin()


async def pause_standby(deployment: Deployment) -> None:
    deployment.pair.standby.signal(signal.SIGSTOP)
    await asyncio.sleep(6)
    deployment.pair.standby.signal(signal.SIGCONT)


async def lose_primary_that_restarted_alone(deployment: Deployment) -> None:
    """A restart makes visible what was written on the primary alone, and nobody was told of. It is lost later.

    So a client that repeats a request must not be told that it is done.
    """
    pair = deployment.pair
    await asyncio.to_thread(pair.standby.kill)
    await asyncio.sleep(2)
    await asyncio.to_thread(pair.primary.kill)
    await asyncio.to_thread(pair.primary.start)
    await deployment.switch()
    await asyncio.sleep(5)
    await asyncio.to_thread(pair.primary.kill)
    await asyncio.to_thread(pair.standby.start, pair.primary)
    await deployment.fail_over("lose_primary_that_restarted_alone")
    await deployment.rejoin()


async def pause_primary(deployment: Deployment) -> None:
    """The machine stands still, and comes back as a primary that nobody needs."""
    old = deployment.pair.primary
    old.signal(signal.SIGSTOP)
    await asyncio.sleep(1)
    await deployment.fail_over("pause_primary")
    old.signal(signal.SIGCONT)
    await asyncio.sleep(2)
    await deployment.rejoin()


async def cut_primary_off(deployment: Deployment) -> None:
    """Nobody reaches the primary, and nobody is refused; it lives when the other one is promoted."""
    for route in deployment.routes:
        await route.set("silent")
    await asyncio.sleep(2)
    await deployment.fail_over("cut_primary_off")
    await deployment.rejoin()


async def silence_one_way(deployment: Deployment) -> None:
    await deployment.routes[0].set("silent")
    await asyncio.sleep(4)
    await deployment.switch(deployment.routes[0])


async def refuse_every_way(deployment: Deployment) -> None:
    for route in deployment.routes:
        await route.set("refusing")
    await asyncio.sleep(2)
    await deployment.switch()
    await deployment.note_return("refuse_every_way")


async def kill_a_core(deployment: Deployment) -> None:
    await deployment.restart_core()


async def lose_audience(deployment: Deployment) -> None:
    """Audience is cut off without a word, and then ends."""
    await deployment.audience_route.set("silent")
    await asyncio.sleep(4)
    await deployment.restart_audience()
    await deployment.ledger.until_measuring()


FAULTS: Final[tuple[Fault, ...]] = (
    kill_worker,  # Another one gets its jobs within two minutes; the test does not wait for them until its end.
    leave_one_core_behind,
    kill_primary,
    pause_standby,
    lose_primary_that_restarted_alone,
    pause_primary,
    cut_primary_off,
    silence_one_way,
    refuse_every_way,
    kill_a_core,
    lose_audience,
)


def order_faults(seed: int) -> Iterator[Fault]:
    """Yield every fault, and then again and again in an order of the seed."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    yield from FAULTS
    for _ in itertools.count():
        yield from chance.sample(FAULTS, len(FAULTS))


@pytest.fixture
async def deployment() -> AsyncIterator[Deployment]:
    """What the faults happen to."""
    async with running_deployment(SEED) as running:
        yield running


async def test_nothing_acknowledged_is_lost(deployment: Deployment) -> None:
    ledger, stopping, happened = deployment.ledger, asyncio.Event(), Counter[str]()
    ledger.pause_s = PAUSE_S
    load = asyncio.create_task(ledger.run(stopping))
    ends_at_s = time.monotonic() + FAULTS_S
    try:
        await ledger.until_working()
        for fault in order_faults(SEED):
            if len(happened) == len(FAULTS) and time.monotonic() > ends_at_s:
                break
            began_s = time.monotonic()
            await fault(deployment)
            await ledger.until_working()
            await asyncio.sleep(1)
            happened[fault.__name__] += 1
            _log.info("fault", name=fault.__name__, took_s=round(time.monotonic() - began_s, 1), **ledger.counts)
            assert ledger.contradictions == []
            deployment.assert_alive()
    finally:
        stopping.set()
        await load
    await ledger.check_everything()
    assert ledger.contradictions == []
    await verify_audit_log(ledger, deployment.cores[1].url)
    try:
        await verify_contract(ledger, deployment.pair.primary.running.superuser_url_of("soundmark_audience"))
    except TimeoutError:
        raise AssertionError(f"the contract was not carried to Audience: {await deployment.describe_jobs()}") from None
    for name, seconds in deployment.back_after_s.items():
        _log.info("back_after", name=name, median_s=round(median(seconds), 1), worst_s=round(max(seconds), 1))
    _log.info("faults", count=happened.total(), **happened)
    _log.info("answers", codes=len(ledger.codes), events=len(ledger.events), **ledger.counts)
    assert max(itertools.chain.from_iterable(deployment.back_after_s.values())) <= BACK_WITHIN_S
