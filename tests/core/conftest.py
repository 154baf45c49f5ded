"""What the tests of Core share."""

import pytest
from support.api.world import World
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.people import People


@pytest.fixture
async def world(people: People, rival: Rival, session_sandbox: RunningSandbox) -> World:
    """An organisation that the person "owner" owns, for the calls of `support.api.calls`."""
    return World(people, rival, await people.tenant_of("owner"), session_sandbox)
