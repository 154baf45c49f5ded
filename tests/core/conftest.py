"""What the tests of Core share."""

import pytest
from support.people import People
from support.rival import Rival
from support.running_sandbox import RunningSandbox
from support.world import World


@pytest.fixture
async def world(people: People, rival: Rival, session_sandbox: RunningSandbox) -> World:
    """An organisation that the person "owner" owns, for the calls of `support.calls`."""
    return World(people, rival, await people.tenant_of("owner"), session_sandbox)
