"""A fake service that misbehaves on command, and a clock that moves on command."""

import socketserver
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from .issuer import NOW, TOKEN, Issuer, compact

# The answer of a route: raw bytes, or pieces of them that are sent one by one.
Response = bytes | Iterable[bytes]


def make_response(status: int, body: bytes = b"", **headers: str) -> bytes:
    """Return a raw HTTP response; header names are written with underscores."""
    fields = {"Content-Length": str(len(body)), "Connection": "close"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = [f"HTTP/1.1 {status} server text", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(frozen=True)
class ReceivedRequest:
    """A request that arrived."""

    path: str
    headers: dict[str, str]


class LoopbackServer(socketserver.ThreadingTCPServer):
    """A server on a free loopback port, with a thread for each connection."""

    daemon_threads = True
    # The connections that may wait; the kernel drops any others, and the client tries again a second later.
    request_queue_size = 128

    def __init__(self, handler: type[socketserver.BaseRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Service(LoopbackServer):
    """A service that is correct until a route is replaced."""

    def __init__(self, issuer: Issuer) -> None:
        super().__init__(_Handler)
        self.received: list[ReceivedRequest] = []
        # A route is one response, or a list whose responses are used in turn; the last one is used for ever.
        self.resolve: Response | list[Response] = make_response(200, compact(issuer.answer()))
        self.keys: Response | list[Response] = make_response(200, issuer.key_set(), Cache_Control="public, max-age=60")
        self.others: dict[str, Response | list[Response]] = {}

    def paths(self) -> list[str]:
        return [request.path for request in self.received]

    def respond(self, path: str) -> Response:
        route = {f"/v1/resolve/{TOKEN}": self.resolve, "/v1/keys": self.keys, **self.others}.get(
            path, make_response(418)
        )
        if isinstance(route, list):
            return route.pop(0) if len(route) > 1 else route[0]
        return route


class _Handler(socketserver.StreamRequestHandler):
    server: Service

    def handle(self) -> None:
        request = self.rfile.readline().decode().split()
        lines = iter(lambda: self.rfile.readline().decode().strip(), "")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.server.received.append(ReceivedRequest(request[1], headers))
        response = self.server.respond(request[1])
        try:
            for piece in [response] if isinstance(response, bytes) else response:
                self.wfile.write(piece)
        except ConnectionError:
            # The receiver hung up, as some tests expect.
            return


@dataclass
class FakeClock:
    """A clock that stands still until it is moved; sleeping moves it at once."""

    at: datetime = NOW
    elapsed_s: float = 0.0
    slept_s: list[float] = field(default_factory=list)
    on_sleep: Callable[[], Any] = lambda: None

    def now(self) -> datetime:
        return self.at

    def monotonic_s(self) -> float:
        return self.elapsed_s

    def advance(self, seconds: float) -> None:
        self.elapsed_s += seconds
        self.at += timedelta(seconds=seconds)

    async def sleep(self, duration_s: float) -> None:
        self.slept_s.append(duration_s)
        self.advance(duration_s)
        self.on_sleep()
