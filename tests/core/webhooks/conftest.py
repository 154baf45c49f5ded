"""What the tests of outbound webhooks share."""

from collections.abc import AsyncIterator

import pytest
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker

from soundmark.core.context import Context
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def ctx(database_url: Secret, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of the worker's jobs."""
    async with make_worker(database_url, clock) as context:
        yield context
