"""A small HTTP server on loopback, in this event loop, that a stand-in answers from and misbehaves with."""

import asyncio
import contextlib
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

# What happens to the next request. `lost`, `half` and `slow` come after the work is done, the others in its place, and
# `held` before it.
Fault = Literal[
    "lost",
    "half",
    "slow",
    "refused",
    "limited",
    "html",
    "html_body",
    "not_an_object",
    "wrong_object",
    "wrong_types",
    "stored_500",
    "slow_500",
    "held",
    "advised_500",
    "final_409",
    "endless",
    "redirect",
]


@dataclass(frozen=True)
class Received:
    """A request, with its header names in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """A response; a `body` that is no bytes is sent as JSON."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"

    def render(self) -> bytes:
        content = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        headers = {
            "content-type": self.media_type,
            "content-length": str(len(content)),
            "connection": "close",
            **self.headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} Answer\r\n{lines}\r\n".encode() + content


@dataclass
class OutsideServer:
    """The running server, what it was sent, and what it does next.

    `worked` is set whenever work was done. With the faults `slow` and `slow_500`, the response waits until `release` is
    set; with `held` the work does, after `reached` was set.
    """

    url: str = ""
    faults: deque[Fault] = field(default_factory=deque)
    received: list[Received] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    worked: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    def require(self, condition: object, complaint: str) -> None:
        """Note what a real server would refuse."""
        if not condition:
            self.complaints.append(complaint)

    def forget(self) -> None:
        self.faults.clear()
        self.received.clear()
        self.complaints.clear()
        self.reached.clear()
        self.worked.clear()
        self.release = asyncio.Event()  # Another one: what still waits belongs to a test that is over.


Work = Callable[[Received, Fault | None], Awaitable[Reply]]

_INSTEAD: Mapping[str, Reply] = {
    "refused": Reply({"error": {"type": "invalid_request_error", "message": "Invalid API Key provided: sk_MARK"}}, 401),
    "limited": Reply({"error": {"type": "rate_limit"}}, 429, {"stripe-should-retry": "true"}),
    "html": Reply(b"<html>down for maintenance</html>", media_type="text/html"),
    "html_body": Reply(b"<html>down for maintenance</html>"),
    "not_an_object": Reply([1]),
    "final_409": Reply({"error": {"type": "api_error"}}, 409, {"stripe-should-retry": "false"}),
    "advised_500": Reply({"error": {"type": "api_error"}}, 500, {"stripe-should-retry": "true"}),
    "redirect": Reply(b"", 307, {"location": "http://127.0.0.1:9/elsewhere"}),
}


@contextlib.asynccontextmanager
async def running_outside(
    server: OutsideServer, work: Work, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """Serve until the block ends, over TLS if there is a context for it."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await _respond(server, work, reader, writer)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    server.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield
    finally:
        listening.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _respond(
    server: OutsideServer, work: Work, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    request = await _read(reader)
    server.received.append(request)
    fault = server.faults.popleft() if server.faults else None
    if fault == "endless":
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            await writer.drain()
    if fault == "held":
        server.reached.set()
        await server.release.wait()
    reply = _INSTEAD[fault] if fault in _INSTEAD else await work(request, fault)
    server.worked.set()
    if fault in {"slow", "slow_500"}:
        await server.release.wait()
    if fault == "lost":
        return
    data = reply.render()
    writer.write(data[:-20] if fault == "half" else data)
    await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    parts = urlsplit(target)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, parts.path, parts.query, headers, body)
