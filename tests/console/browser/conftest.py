"""The console on a real socket, for real browsers."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import pytest
from console.conftest import connect_to, console_settings
from playwright.async_api import Page
from support.api.core_client import Api
from support.api.core_settings import OPERATOR_TOKEN
from support.browser.chromium import Browsing
from support.console.client import ConsoleClient
from support.console.faulty_core import FaultyCore
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import served_in_loop

from soundmark.console.app import assemble_app, make_console
from soundmark.kit.http.server import sockets


@dataclass(frozen=True)
class ServedConsole:
    """A console that browsers reach at `url`."""

    url: str
    client: ConsoleClient
    browsing: Browsing

    async def open(self, path: str, now: datetime, **options: object) -> Page:
        """Open a page as the operator, in a context of its own with Playwright's options."""
        context = await self.browsing.open_context(base_url=self.url, **options)
        self.client.sign_in_as_operator(now)
        await context.add_cookies(
            [{"name": each.name, "value": str(each.value), "url": self.url} for each in self.client.cookies.jar]
        )
        page = await context.new_page()
        await page.goto(path)
        return page

    def opener(self, now: datetime) -> Callable[..., Awaitable[Page]]:
        """Return a function that opens the list of organisations, given Playwright's options."""
        return partial(self.open, "/organizations", now)


@contextlib.asynccontextmanager
async def serving_console(api: Api, clock: FakeClock, browsing: Browsing) -> AsyncIterator[ServedConsole]:
    """Serve a console of the operator in front of this Core, which the pages' scripts reach as well."""
    with sockets.shared_socket("127.0.0.1", 0) as sock, sockets.shared_socket("127.0.0.1", 0) as core_sock:
        url, core_url = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in (sock, core_sock))
        settings = console_settings(
            console_url=url, base_url=core_url, core_url=core_url, operator_token=OPERATOR_TOKEN
        )
        core = FaultyCore(connect_to(api.app))
        console = make_console(settings, clock, core)
        app = assemble_app(console)
        async with served_in_loop(app, sock), served_in_loop(api.app, core_sock, is_running=True):
            yield ServedConsole(url, ConsoleClient(app, console, core, origin=url), browsing)


@pytest.fixture
async def served(api: Api, clock: FakeClock, browsing: Browsing) -> AsyncIterator[ServedConsole]:
    """The console of the operator, in front of the shared Core."""
    async with serving_console(api, clock, browsing) as console:
        yield console
