from collections.abc import AsyncIterator

import pytest
from support.outside.running_sandbox import RunningSandbox, running_sandbox
from support.processes.fake_clock import FakeClock
from support.webhooks.received_webhooks import ReceivedWebhooks

CORE_URL = "http://core.test"


@pytest.fixture
def clock() -> FakeClock:
    """A clock that the test can move."""
    return FakeClock()


@pytest.fixture
def core() -> ReceivedWebhooks:
    """A Core that keeps what is sent to it."""
    return ReceivedWebhooks()


@pytest.fixture
async def sandbox(core: ReceivedWebhooks, clock: FakeClock) -> AsyncIterator[RunningSandbox]:
    """The sandbox, with a clock of its own."""
    async with running_sandbox(core_url=CORE_URL, deliver_to=core, clock=clock, retry_pauses_s=(0.01,)) as running:
        yield running
