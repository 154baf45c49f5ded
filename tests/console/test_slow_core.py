"""A Core that takes connections and does not answer in time: a page says so and keeps what was typed."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
from support import misbehaving_server
from support.console_client import ConsoleClient
from support.core_settings import OPERATOR_TOKEN
from support.fake_clock import FakeClock
from support.faulty_core import FaultyCore
from support.misbehaving_server import Behaviour
from support.running_apps import running_lifespan

from soundmark.console import core_api
from soundmark.console.app import assemble_app, make_console

from .conftest import console_settings


@pytest.fixture(params=["silent", "slow_headers", "dripping", "endless"])
async def waiting(
    request: pytest.FixtureRequest, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ConsoleClient]:
    """The operator's browser at a console whose Core behaves like that."""
    monkeypatch.setattr(core_api, "_TIMEOUT_S", 0.3)
    behave: Behaviour = getattr(misbehaving_server, request.param)
    async with misbehaving_server.misbehaving_server(behave) as slow:
        settings = console_settings(core_url=slow.url, operator_token=OPERATOR_TOKEN)
        core = FaultyCore(httpx2.AsyncHTTPTransport(trust_env=False))
        console = make_console(settings, clock, core)
        app = assemble_app(console)
        async with running_lifespan(app):
            yield ConsoleClient(app, console, core).sign_in_as_operator(clock.now())


async def test_a_slow_core_is_a_page_that_keeps_what_was_typed(waiting: ConsoleClient) -> None:
    async with asyncio.timeout(10):
        page = await waiting.submit("/organizations", {"name": "Radio Nordlicht"})

    assert page.status == 503
    assert page.trouble in {"core_unreachable", "core_unreadable"}
    assert "Radio Nordlicht" in [each.get("value") for each in page.find_all(".//input")]
    sent = [call for call in waiting.core.calls if call.method == "POST"]
    assert len(sent) == 1, "what may have happened is not done again by itself"


async def test_a_slow_core_is_a_page_for_a_reader(waiting: ConsoleClient) -> None:
    async with asyncio.timeout(10):
        page = await waiting.get("/organizations")

    assert page.status == 503
    assert page.trouble in {"core_unreachable", "core_unreadable"}
