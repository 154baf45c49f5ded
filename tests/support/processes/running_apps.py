"""The production apps, running over ASGI in this event loop or on a loopback socket in a thread."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import uvicorn

from soundmark import settings as declared
from soundmark.audio.app import create_app as create_audio_app
from soundmark.core.app import create_app
from soundmark.core.context import Context
from soundmark.core.live import clock_offset
from soundmark.core.worker import make_job_context
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.asgi import AsgiApp
from soundmark.kit.http.server import sockets
from support.api.core_client import Api
from support.api.core_settings import AUDIO_CREDENTIAL, jobs_settings
from support.processes.fake_clock import FakeClock

# Tests move the clock of a running Core. Compared with the database's in between, it would be wrong now and then.
clock_offset.MEASURE_EVERY_S = 1e6  # type: ignore[misc]  # final for everybody else


@contextlib.asynccontextmanager
async def running_core(settings: declared.CoreSettings, clock: FakeClock | None = None) -> AsyncIterator[Api]:
    """Run the production app with its lifespan, and yield a client of the operator.

    Raises: the error with which the app refuses to start.
    """
    clock = clock or FakeClock()
    app = create_app(settings, clock=clock)
    async with running_lifespan(app):
        yield Api(app, clock)


@contextlib.asynccontextmanager
async def make_worker(database_url: Secret, clock: Clock | None = None, **changes: str) -> AsyncIterator[Context]:
    """Yield the context of the worker's jobs, with its database open; `changes` are those of `jobs_settings`."""
    ctx = make_job_context(jobs_settings(database_url, **changes), clock=clock)
    await ctx.db.open()
    try:
        yield ctx
    finally:
        for client in (ctx.cells, ctx.card, ctx.local, ctx.accounting, ctx.webhooks, ctx.desk, ctx.witnesses):
            await client.aclose()
        await ctx.db.close()


@contextlib.asynccontextmanager
async def running_lifespan(app: AsgiApp) -> AsyncIterator[None]:
    """Run the lifespan of an app, from start to stop.

    Raises: the error with which the app refuses to start.
    """
    to_app: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    from_app: asyncio.Queue[Any] = asyncio.Queue()
    lifespan = asyncio.create_task(app({"type": "lifespan", "asgi": {}, "state": {}}, to_app.get, from_app.put))  # type: ignore[arg-type]  # the protocol's loose dicts
    await to_app.put({"type": "lifespan.startup"})
    started = await from_app.get()
    if started["type"] == "lifespan.startup.failed":
        await lifespan  # Raises why.
    assert started["type"] == "lifespan.startup.complete", started
    try:
        yield
    finally:
        await to_app.put({"type": "lifespan.shutdown"})
        await lifespan


class _AnnouncedServer(uvicorn.Server):
    """A uvicorn server that reports when it listens, or that it never will."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.decided = threading.Event()

    async def startup(self, sockets: list[Any] | None = None) -> None:
        try:
            await super().startup(sockets=sockets)
        finally:
            self.decided.set()


@contextlib.contextmanager
def served_in_thread(app: Any) -> Iterator[str]:
    """Serve an ASGI app on a real loopback socket and yield its URL."""
    server = _AnnouncedServer(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=2))
    with sockets.shared_socket("127.0.0.1", 0) as sock:
        thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
        thread.start()
        try:
            assert server.decided.wait(30), "the app must start"
            assert server.started, "the app refused to start"
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive(), "the server must stop"


@contextlib.asynccontextmanager
async def served_in_loop(app: Any, sock: socket.socket, *, is_running: bool = False) -> AsyncIterator[None]:
    """Serve an ASGI app on a bound socket in this event loop, for apps that share it with others.

    The lifespan of an app that `is_running` is somebody else's.
    """
    lifespan: Any = "off" if is_running else "on"
    server = _AnnouncedServer(
        uvicorn.Config(app, log_config=None, ws="none", lifespan=lifespan, timeout_graceful_shutdown=2)
    )
    serving = asyncio.create_task(server.serve(sockets=[sock]), name="served in the loop")
    try:
        await asyncio.to_thread(server.decided.wait)
        assert server.started, "the app refused to start"
        yield
    finally:
        server.should_exit = True
        await serving


def running_audio() -> contextlib.AbstractContextManager[str]:
    """Serve the real audio component on a real socket."""
    return served_in_thread(
        create_audio_app(declared.read(declared.AudioSettings, {"SOUNDMARK_AUDIO_CREDENTIAL": AUDIO_CREDENTIAL}))
    )
