"""What the tests of the transparency log share."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.log.stored_log import StoredLog
from support.log.witnesses import TheirWitness, running_witnesses
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker

from soundmark.core.context import Context
from soundmark.core.domain.log.state import Transparency, Witness
from soundmark.core.features.log.integration.integrator import LogIntegrator
from soundmark.core.features.log.integration.opening import open_log
from soundmark.kit.crypto.secret import Secret

Integrators = Callable[..., LogIntegrator]


@pytest.fixture
async def ctx(database_url: Secret, clock: FakeClock, rival: Rival) -> AsyncIterator[Context]:
    """The context of the worker's jobs, on a log that has just been made."""
    await rival.run("TRUNCATE log_state, log_keys, log_leaves, log_tiles, log_checkpoints, log_queue")
    async with make_worker(database_url, clock) as context:
        await open_log(context)
        yield context


@pytest.fixture
async def stored(ctx: Context, rival: Rival) -> StoredLog:
    """The log as it is stored, examined by others."""
    stored = await StoredLog.read(rival)
    assert stored.origin == ctx.transparency.origin
    return stored


@pytest.fixture
def witnesses(tmp_path: Path, stored: StoredLog) -> Iterator[list[TheirWitness]]:
    """Three witnesses of others that know the log."""
    with running_witnesses(tmp_path, 3) as running:
        for witness in running:
            witness.know(stored.origin, stored.vkey)
        yield running


@pytest.fixture
async def integrators(ctx: Context) -> AsyncIterator[Integrators]:
    """Make workers' integrators, with these witnesses."""
    made = []

    def make(*asked: Witness, quorum: int = 0) -> LogIntegrator:
        transparency = Transparency(ctx.transparency.origin, asked, quorum)
        made.append(LogIntegrator(replace(ctx, transparency=transparency)))
        return made[-1]

    yield make
    for integrator in made:
        await integrator.finish_asking()


@pytest.fixture
def core(api: Api, ctx: Context) -> Api:
    """The shared Core, on the log of `ctx`."""
    assert ctx is not None, "it makes the log"
    return api
