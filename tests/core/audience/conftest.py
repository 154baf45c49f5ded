"""What the tests of Audience's control share."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.api.core_settings import jobs_settings
from support.database.rival import Rival
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


@pytest.fixture
def outcomes(rival: Rival) -> Any:
    """The audit log's entries about Audience, oldest first: each action with its outcome."""

    async def read() -> list[tuple[str, str]]:
        rows = await rival.rows(
            "SELECT action, outcome FROM audit_entries WHERE action LIKE 'audience.%%' ORDER BY created_at, id"
        )
        return [(action.removeprefix("audience.integration_"), outcome) for action, outcome in rows]

    return read
