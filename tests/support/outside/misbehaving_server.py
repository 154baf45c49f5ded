"""A server that misbehaves on command, written byte by byte."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class MisbehavingServer:
    """A running server that keeps the requests that it received."""

    url: str
    requests: list[bytes] = field(default_factory=list)


def answer(body: bytes = b"", *, status: str = "200 OK", media_type: str = "application/json") -> Behaviour:
    """Answer properly."""
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return raw(head.encode() + body)


def raw(data: bytes) -> Behaviour:
    """Send these bytes and hang up."""

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return behave


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Never answer; leave when the caller does."""
    await reader.read()


async def slow_headers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send one header after the other without an end, each within any single timeout."""
    await _without_end(writer, b"HTTP/1.1 200 OK\r\n", b"x-more: yes\r\n", pause_s=0.1)


async def dripping(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a byte of the body now and then, without an end."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n"
    await _without_end(writer, head, b" ", pause_s=0.1)


async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the body as fast as it is read, without an end."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\ntransfer-encoding: chunked\r\n\r\n"
    await _without_end(writer, head, b"10000\r\n" + b"x" * 0x10000 + b"\r\n", pause_s=0)


async def _without_end(writer: asyncio.StreamWriter, head: bytes, piece: bytes, *, pause_s: float) -> None:
    writer.write(head)
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause_s)


@contextlib.asynccontextmanager
async def misbehaving_server(
    behave: Behaviour, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[MisbehavingServer]:
    """Run a loopback server that does `behave` on every request, over TLS if there is a context for it."""
    server_side: set[asyncio.Task[None]] = set()
    started = MisbehavingServer("")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        server_side.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            started.requests.append(await _read_request(reader))
            await behave(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    started.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield started
    finally:
        server.close()
        for task in server_side:
            task.cancel()
        await asyncio.gather(*server_side, return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    size = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return head + await reader.readexactly(size)
