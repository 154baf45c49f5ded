"""What the tests of support tickets share."""

from collections.abc import AsyncIterator

import pytest
from support.api.core_settings import jobs_settings
from support.outside.desk import MAILBOX_ID
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock

from soundmark.core.context import Context
from soundmark.core.worker import make_job_context
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def work(database_url: Secret, desk: RunningSandbox, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of Core's worker."""
    changes = {"SUPPORT_DESK_BASE_URL": f"{desk.url}/desk", "SUPPORT_DESK_MAILBOX_ID": str(MAILBOX_ID)}
    ctx = make_job_context(jobs_settings(database_url, **changes), clock=clock)
    await ctx.db.open()
    yield ctx
    await ctx.cells.aclose()
    await ctx.desk.aclose()
    await ctx.db.close()
