"""Whether the console is ready: it serves without Core, whose absence its pages explain, and `/readyz` names Core."""

import contextlib
from collections.abc import AsyncIterator

import httpx2
import pytest
from support.console.client import ConsoleClient
from support.console.faulty_core import FaultyCore
from support.outside.misbehaving_server import Behaviour, answer, misbehaving_server, silent
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_lifespan

from soundmark.console.app import assemble_app, make_console
from soundmark.kit.http.server.sockets import reserve_port

from .conftest import console_settings

NOT_READY = {"status": "not_ready", "unavailable": ["core"], "degraded": []}


@contextlib.asynccontextmanager
async def console_before(core_url: str, clock: FakeClock) -> AsyncIterator[ConsoleClient]:
    """Run a console that reaches Core at this address."""
    settings = console_settings(core_url=core_url)
    core = FaultyCore(httpx2.AsyncHTTPTransport(trust_env=False))
    console = make_console(settings, clock, core)
    app = assemble_app(console)
    async with running_lifespan(app):
        yield ConsoleClient(app, console, core)


async def test_a_console_with_its_core_is_ready(operator: ConsoleClient) -> None:
    assert (await operator.get("/readyz")).response.json()["unavailable"] == []
    assert (await operator.get("/healthz")).response.json() == {"status": "ok"}


async def test_without_core_it_serves_and_is_not_ready(clock: FakeClock) -> None:
    with reserve_port("127.0.0.1", 0) as held:
        async with console_before(f"http://127.0.0.1:{held.getsockname()[1]}", clock) as client:
            readiness = await client.get("/readyz")
            assert (readiness.status, readiness.response.json()) == (503, NOT_READY)
            assert (await client.get("/healthz")).status == 200
            assert (await client.get("/static/icon.svg")).status == 200


@pytest.mark.parametrize("behave", [silent, answer(status="503 Service Unavailable")], ids=["silent", "failing"])
async def test_a_core_that_does_not_answer_well_is_named(clock: FakeClock, behave: Behaviour) -> None:
    async with misbehaving_server(behave) as core, console_before(core.url, clock) as client:
        readiness = await client.get("/readyz")
        assert (readiness.status, readiness.response.json()) == (503, NOT_READY)


async def test_a_core_whose_dependencies_are_missing_is_there(clock: FakeClock) -> None:
    """Otherwise a load balancer would take the console away just when its pages explain what is missing."""
    async with misbehaving_server(answer(b'{"status": "ok"}')) as core, console_before(core.url, clock) as client:
        assert (await client.get("/readyz")).status == 200
        assert [request.split(b" ")[1] for request in core.requests] == [b"/healthz"]
