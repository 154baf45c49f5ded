"""One process of one component: an ASGI app on its own listening socket, and its metrics beside it."""

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import structlog
import uvicorn
import uvloop
from uvicorn.lifespan.on import LifespanOn, LifespanSendMessage
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from soundmark.kit import sockets
from soundmark.kit.gathering import GatheringTransport
from soundmark.kit.metrics import metrics_app
from soundmark.kit.startup import CannotStart

GRACE_S: Final = 10
_GC_THRESHOLDS: Final = (50_000, 50, 50)
_HEAD_MAX_BYTES: Final = 64 * 1024  # Eight times the longest credential that is read; the parser itself has no limit.
_REQUEST_MAX_S: Final = 30  # A mebibyte at 35 kB/s; whoever is slower would hold a connection for ever.
_TICKS_BETWEEN_SWEEPS: Final = 10  # uvicorn ticks ten times a second.
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Listen:
    """Where a component serves; `metrics_port` None serves no metrics."""

    host: str
    port: int
    metrics_port: int | None = None


class _Protocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 with each answer in one piece, and an end to what a request holds of us and for how long."""

    _head_bytes = 0
    _waiting_since_s: float | None = None  # For a whole request, on the loop's clock; None while there is one.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own type
        self._waiting_since_s = self.loop.time()
        super().connection_made(GatheringTransport(transport, self.loop))

    def on_message_begin(self) -> None:
        self._waiting_since_s = self.loop.time()
        super().on_message_begin()

    def close_if_slow(self, now_s: float) -> None:
        """End the connection of whoever takes too long to send one request."""
        if self._waiting_since_s is not None and now_s - self._waiting_since_s > _REQUEST_MAX_S:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > _HEAD_MAX_BYTES:
            self.transport.close()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._waiting_since_s = None
        super().on_message_complete()


class _Lifespan(LifespanOn):
    """uvicorn's, but an app that cannot start says so in one line; only what nobody expected has a traceback."""

    async def startup(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self.main())
        await self.receive_queue.put({"type": "lifespan.startup"})
        await self.startup_event.wait()
        self.should_exit = self.startup_failed or self.error_occurred
        if self.should_exit:
            await self._running

    async def send(self, message: LifespanSendMessage) -> None:
        # The framework sends a traceback from where it caught the error; the error itself is better to go by.
        error = sys.exc_info()[1]
        if message["type"] == "lifespan.startup.failed" and isinstance(error, CannotStart):
            _log.error("cannot_start", reason=str(error))
            message = {**message, "message": ""}
        await super().send(message)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: several servers of one process stop together."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_BETWEEN_SWEEPS == 0:
            now_s = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                assert isinstance(connection, _Protocol), "every connection speaks our protocol"
                connection.close_if_slow(now_s)
        return await super().on_tick(counter)

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets=sockets)
        # Everything made so far lives as long as the process. A collector that keeps walking it costs a fifth of the
        # throughput (bench/RESULTS.md), so it is told to look at new objects only, and seldom.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)


def run(app: Any, listen: Listen) -> None:
    """Serve `app` until SIGTERM or SIGINT, then finish what is under way for at most `GRACE_S` seconds.

    Raises: sockets.PortTaken; SystemExit with status 1 when the app's own start-up failed.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(app, listen))


async def _serve(app: Any, listen: Listen) -> None:
    servers = [(_server(app, lifespan="on"), sockets.shared_socket(listen.host, listen.port))]
    if listen.metrics_port is not None:
        metrics = _server(metrics_app(), lifespan="off")
        servers.append((metrics, sockets.shared_socket("127.0.0.1", listen.metrics_port)))
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for server, _ in servers:
            server.should_exit = True

    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stop)
    main, _ = servers[0]
    try:
        async with asyncio.TaskGroup() as tasks:
            for server, sock in servers:
                tasks.create_task(_until_stopped(server, sock, stop))
    finally:
        for _, sock in servers:
            sock.close()
    if not main.started:
        raise SystemExit(1)


async def _until_stopped(server: uvicorn.Server, sock: Any, stop: Any) -> None:
    try:
        # uvicorn ends the process with a status of its own when start-up fails; which one it is, `_serve` says.
        with contextlib.suppress(SystemExit):
            await server.serve(sockets=[sock])
    finally:
        stop()


def _server(app: Any, *, lifespan: Any) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan=lifespan,
        # A forwarded header is judged where it is used, against the configured proxies, and nowhere else.
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=GRACE_S,
    )
    config.load()
    if lifespan == "on":
        config.lifespan_class = _Lifespan
    return _Server(config)
