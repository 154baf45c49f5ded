"""People who sign in to the console at an issuer that does what a test says."""

from collections.abc import AsyncIterator, Iterator

import pytest
from console.conftest import console_settings, running_console
from support.console.client import ConsoleClient
from support.console.login import Desk
from support.identity.oidc_issuer import CLIENT_ID
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People


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


@pytest.fixture
async def second(people: People, visitors: ConsoleClient, clock: FakeClock) -> AsyncIterator[ConsoleClient]:
    """The same browser at another process of the console."""
    issuer = {"oidc_issuer": people.issuer.url, "oidc_client_id": CLIENT_ID}
    async with running_console(console_settings(**issuer), people.api, clock) as client:
        client._client._cookies = visitors._client._cookies
        yield client
