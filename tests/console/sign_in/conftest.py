"""People who sign in to the console at an issuer that does what a test says."""

from collections.abc import Iterator

import pytest
from support.console_client import ConsoleClient
from support.console_login import Desk
from support.people import People


@pytest.fixture
def desk(people: People) -> Iterator[Desk]:
    """The issuer's side of logins."""
    people.issuer.reset()
    yield Desk(people.issuer)
    people.issuer.reset()


@pytest.fixture
async def person(visitors: ConsoleClient, desk: Desk) -> ConsoleClient:
    """The browser of Alice, who signed in with a password alone."""
    await desk.sign_in(visitors)
    return visitors
