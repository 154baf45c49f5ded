"""What the tests of Core share."""

from collections.abc import AsyncIterator

import pytest
from support.api.world import World
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.killable import Killable
from support.processes.running_apps import make_worker
from support.tenancy.people import People

from soundmark.core.context import Context
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def world(people: People, rival: Rival, session_sandbox: RunningSandbox) -> World:
    """An organisation that the person "owner" owns, for the calls of `support.api.calls`."""
    return World(people, rival, await people.tenant_of("owner"), session_sandbox)


@pytest.fixture
def killable(database_url: Secret, measuring_url: str, outside_urls: dict[str, str]) -> Killable:
    """Processes that a test may kill, on the database of the shared Core and with its neighbours."""
    return Killable(database_url, measuring_url, outside_urls)


@pytest.fixture
async def work(database_url: Secret, measuring_url: str, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of Core's worker, with Audience."""
    async with make_worker(database_url, clock, AUDIENCE_URL=measuring_url) as ctx:
        yield ctx
