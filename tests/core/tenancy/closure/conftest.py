"""What the tests of closures share."""

from collections.abc import AsyncIterator

import pytest
from support.api.core_settings import jobs_settings
from support.processes.fake_clock import FakeClock

from soundmark.core.context import Context
from soundmark.core.worker import make_job_context
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def work(database_url: Secret, measuring_url: str, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of Core's worker."""
    ctx = make_job_context(jobs_settings(database_url, AUDIENCE_URL=measuring_url), clock=clock)
    await ctx.db.open()
    yield ctx
    await ctx.cells.aclose()
    await ctx.db.close()
