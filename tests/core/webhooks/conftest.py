"""What the tests of outbound webhooks share."""

from collections.abc import AsyncIterator

import pytest
from support.api.core_settings import jobs_settings
from support.processes.fake_clock import FakeClock

from soundmark.core.context import Context
from soundmark.core.worker import make_job_context
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def ctx(database_url: Secret, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of the worker's jobs."""
    context = make_job_context(jobs_settings(database_url), clock=clock)
    await context.db.open()
    yield context
    await context.db.close()
