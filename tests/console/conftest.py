"""What the tests of the console share: the production app over ASGI, in front of the shared Core."""

import contextlib
from collections.abc import AsyncIterator

import httpx2
import pytest
from support.api.core_client import Api
from support.api.core_settings import BASE_URL, OPERATOR_TOKEN
from support.console.client import CONSOLE_URL, ConsoleClient
from support.console.faulty_core import FaultyCore
from support.identity.oidc_issuer import CLIENT_ID
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_lifespan
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.console.app import assemble_app, make_console
from soundmark.kit.http.asgi import AsgiApp
from soundmark.settings import ConsoleSettings

CONSOLE_KEY = "c" * 42 + "A"


def console_settings(**changes: object) -> ConsoleSettings:
    """Return the settings of a console in front of the shared Core, except for `changes`."""
    values = {"base_url": BASE_URL, "console_url": CONSOLE_URL, "console_key": CONSOLE_KEY, **changes}
    return ConsoleSettings.model_validate(values)


def connect_to(app: AsgiApp) -> httpx2.ASGITransport:
    """Return a transport that sends the console's calls to an app in this process."""
    return httpx2.ASGITransport(app=app, client=("127.0.0.1", 40001), raise_app_exceptions=False)  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise


@contextlib.asynccontextmanager
async def running_console(settings: ConsoleSettings, api: Api, clock: FakeClock) -> AsyncIterator[ConsoleClient]:
    """Run a console in front of this Core, and yield a browser."""
    core = FaultyCore(connect_to(api.app))
    console = make_console(settings, clock, core)
    app = assemble_app(console)
    async with running_lifespan(app):
        yield ConsoleClient(app, console, core)


@pytest.fixture
async def operator(api: Api, clock: FakeClock) -> AsyncIterator[ConsoleClient]:
    """The operator's browser at a console without an identity provider."""
    async with running_console(console_settings(operator_token=OPERATOR_TOKEN), api, clock) as client:
        yield client.sign_in_as_operator(clock.now())


@pytest.fixture
async def visitors(people: People, clock: FakeClock) -> AsyncIterator[ConsoleClient]:
    """A browser at a console whose people sign in with an identity provider; `sign_in_as` signs one in."""
    issuer = {"oidc_issuer": people.issuer.url, "oidc_client_id": CLIENT_ID}
    async with running_console(console_settings(**issuer), people.api, clock) as client:
        yield client


@pytest.fixture
def codes(tenant: Tenant) -> str:
    """The path of the tenant's Codes."""
    return f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/codes"
