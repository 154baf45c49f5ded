"""What the tests of support tickets share."""

from collections.abc import AsyncIterator

import pytest
from support.outside.desk import MAILBOX_ID
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker

from soundmark.core.context import Context
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def work(database_url: Secret, desk: RunningSandbox, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of Core's worker."""
    changes = {"SUPPORT_DESK_BASE_URL": f"{desk.url}/desk", "SUPPORT_DESK_MAILBOX_ID": str(MAILBOX_ID)}
    async with make_worker(database_url, clock, **changes) as ctx:
        yield ctx
