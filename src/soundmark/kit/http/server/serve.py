"""One process of a component: an ASGI app on a listening socket, and its metrics on another."""

import asyncio
import contextlib
import functools
import gc
import resource
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog
import uvicorn
import uvloop
from uvicorn.lifespan.on import LifespanOn, LifespanSendMessage

from soundmark.kit.garbage_collection import collect_seldom
from soundmark.kit.http.asgi import DRAINING
from soundmark.kit.http.server import sockets
from soundmark.kit.http.server.connection import Connection, ConnectionGate, ConnectionLimits, limit_memory_of_peers
from soundmark.kit.metrics import metrics_app
from soundmark.kit.tasks import wait_for_event

GRACE_S: Final = 10
_TICK_S: Final = 1.0
_TICKS_OF_UVICORN: Final = 10  # It ticks ten times a second, and makes the Date header every tenth time.
_FILES_RESERVED: Final = 256  # For the database, the private components, logs and the loop itself.
_log: Final = structlog.get_logger()


class CannotStart(Exception):
    """An operator must fix something first; the message is one line that names it, without secrets."""


@dataclass(frozen=True, slots=True)
class Listen:
    """The addresses where a component and its metrics listen; `metrics_port` None means no metrics."""

    host: str
    port: int
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"


class _Lifespan(LifespanOn):
    """uvicorn's lifespan, but an app that cannot start logs one line; only unexpected errors have a traceback."""

    async def startup(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self.main())
        await self.receive_queue.put({"type": "lifespan.startup"})
        await self.startup_event.wait()
        self.should_exit = self.startup_failed or self.error_occurred
        if self.should_exit:
            await self._running

    async def send(self, message: LifespanSendMessage) -> None:
        # The framework sends only a traceback as text; the error itself says more.
        error = sys.exc_info()[1]
        if message["type"] == "lifespan.startup.failed" and isinstance(error, CannotStart):
            _log.error("cannot_start", reason=str(error))
            message = {**message, "message": ""}
        await super().send(message)


class _Server(uvicorn.Server):
    """uvicorn that wakes once a second and stops when it is told to, without signal handlers of its own.

    Several servers of one process stop together.
    """

    def __init__(self, config: uvicorn.Config, gate: ConnectionGate) -> None:
        super().__init__(config)
        self.gate: Final = gate
        self._stopping: Final = asyncio.Event()

    def drain(self) -> None:
        """Make `/readyz` answer 503, and go on serving."""
        self.lifespan.state[DRAINING] = True

    def stop(self) -> None:
        """Finish open requests and end."""
        self.should_exit = True
        self._stopping.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter += _TICKS_OF_UVICORN
            await wait_for_event(self._stopping, _TICK_S)

    async def on_tick(self, counter: int) -> bool:
        connections = [each for each in self.server_state.connections if isinstance(each, Connection)]
        self.gate.sweep(connections, asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets=sockets)
        # What exists now lives as long as the process, so the garbage collector need not traverse it ever again. Next
        # to nothing of it is garbage, and collecting that first would take a tenth of the start.
        gc.freeze()
        collect_seldom()


def run(
    app: Any,
    listen: Listen,
    limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - frozen
    connection_class: type[Connection] = Connection,
    *,
    drain_s: int = 0,
) -> None:
    """Serve `app` until SIGTERM or SIGINT, drain, then finish open requests for at most `GRACE_S` seconds.

    While it drains, for `drain_s` seconds or until the next signal, it serves on but is not ready.

    Raises: sockets.CannotListen; SystemExit with status 1 if the app's own start-up failed.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(app, listen, _limits_of_this_process(limits), connection_class, drain_s))


def _limits_of_this_process(limits: ConnectionLimits) -> ConnectionLimits:
    """Raise this process's limit on open files as far as possible, and limit the connections to fit below it.

    A process without a free file descriptor cannot answer anybody, not even a health check.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    if soft == resource.RLIM_INFINITY:
        return limits
    fitting = max(soft - _FILES_RESERVED, soft // 2)
    if fitting < limits.connections_max:
        _log.warning("fewer_connections_than_configured", open_files=soft, connections_max=fitting)
        limits = replace(limits, connections_max=fitting)
    return limits


async def _serve(
    app: Any, listen: Listen, limits: ConnectionLimits, connection_class: type[Connection], drain_s: int
) -> None:
    main = _server(app, limits, connection_class, lifespan="on")
    servers = [(main, sockets.shared_socket(listen.host, listen.port))]
    if listen.metrics_port is not None:
        metrics = _server(metrics_app(), ConnectionLimits(), Connection, lifespan="off")
        servers.append((metrics, sockets.shared_socket(listen.metrics_host, listen.metrics_port)))
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for server, _ in servers:
            server.stop()

    is_draining = False

    def drain_or_stop() -> None:
        nonlocal is_draining
        if is_draining or not drain_s or not main.started:
            stop()
        else:
            is_draining = True
            main.drain()
            _log.info("draining", seconds=drain_s)
            loop.call_later(drain_s, stop)

    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, drain_or_stop)
    try:
        async with asyncio.TaskGroup() as tasks:
            for server, sock in servers:
                limit_memory_of_peers(sock)
                tasks.create_task(_until_stopped(server, sock, stop))
    finally:
        for _, sock in servers:
            sock.close()
    if not main.started:
        raise SystemExit(1)


async def _until_stopped(server: uvicorn.Server, sock: Any, stop: Any) -> None:
    try:
        # uvicorn raises SystemExit with its own status if start-up fails; `_serve` chooses the status instead.
        with contextlib.suppress(SystemExit):
            await server.serve(sockets=[sock])
    finally:
        stop()


def _server(app: Any, limits: ConnectionLimits, connection_class: type[Connection], *, lifespan: Any) -> _Server:
    gate = ConnectionGate(limits)
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan=lifespan,
        # Forwarded headers are checked against the configured proxies where they are used, and only there.
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=GRACE_S,
    )
    config.load()
    config.http_protocol_class = functools.partial(connection_class, gate=gate)  # type: ignore[assignment]  # it is called
    if lifespan == "on":
        config.lifespan_class = _Lifespan
    return _Server(config, gate)
