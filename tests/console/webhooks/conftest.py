"""What the tests of webhook pages share."""

from collections.abc import AsyncIterator

import pytest
from core.webhooks.delivery.conftest import Steps
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.webhooks.consumer import WebhookConsumer, running_consumer

from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def steps(database_url: Secret, clock: FakeClock) -> AsyncIterator[Steps]:
    """Core's worker, which delivers when it is told to."""
    async with make_worker(database_url, clock) as ctx:
        yield Steps(ctx)


@pytest.fixture
async def consumer() -> AsyncIterator[WebhookConsumer]:
    """A consumer of webhooks."""
    async with running_consumer() as running:
        yield running
