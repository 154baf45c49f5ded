"""A server that consumes webhooks: it keeps the messages, checks their signatures, and misbehaves on command."""

import asyncio
import base64
import contextlib
import hmac
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

# What happens to the next message instead of `204`: a status, or one of these. `held` answers once `release` is set.
Reaction = int | Literal["hang", "reset", "drip", "endless", "held"]
_RESPONSE = "HTTP/1.1 {} Answer\r\nlocation: http://127.0.0.1:9/elsewhere\r\ncontent-length: 0\r\n\r\n"


@dataclass(frozen=True)
class Message:
    """A message that arrived, with its header names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def content(self) -> Any:
        return json.loads(self.body)

    def signed_by(self, secret: str) -> bool:
        """Return whether one of the signatures is made with this secret."""
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        expected = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
        return expected in self.headers["webhook-signature"].split(" ")


@dataclass
class WebhookConsumer:
    """The running consumer, and what it does: first `reactions`, one for each message, then always `otherwise`."""

    url: str = ""
    otherwise: Reaction = 204
    reactions: deque[Reaction] = field(default_factory=deque)
    messages: list[Message] = field(default_factory=list)
    under_way: int = 0
    under_way_max: int = 0
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def types(self) -> list[str]:
        """Return the type of each message, in the order of their arrival."""
        return [message.content["type"] for message in self.messages]

    async def until_arrived(self, count: int, *, within_s: float = 60) -> None:
        """Wait until this number of messages has arrived."""
        async with asyncio.timeout(within_s), self.arrived:
            await self.arrived.wait_for(lambda: len(self.messages) >= count)


@contextlib.asynccontextmanager
async def running_consumer(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[WebhookConsumer]:
    """Run a consumer on a loopback socket, which keeps its connections."""
    consumer, tasks = WebhookConsumer(), set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                await _take(consumer, reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    consumer.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield consumer
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _take(consumer: WebhookConsumer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    message = await _read(reader)
    reaction = consumer.reactions.popleft() if consumer.reactions else consumer.otherwise
    consumer.under_way += 1
    consumer.under_way_max = max(consumer.under_way_max, consumer.under_way)
    try:
        async with consumer.arrived:
            consumer.messages.append(message)
            consumer.arrived.notify_all()
        await _react(consumer, reaction, reader, writer)
    finally:
        consumer.under_way -= 1


async def _react(
    consumer: WebhookConsumer, reaction: Reaction, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    match reaction:
        case "hang":
            await reader.read()
        case "reset":
            writer.transport.abort()
        case "drip" | "endless":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
            while True:
                writer.write(b" " * (1 if reaction == "drip" else 65536))
                await writer.drain()
                await asyncio.sleep(0.05 if reaction == "drip" else 0)
        case "held":
            await consumer.release.wait()
            status = consumer.otherwise if isinstance(consumer.otherwise, int) else 204
            writer.write(_RESPONSE.format(status).encode())
        case int():
            writer.write(_RESPONSE.format(reaction).encode())


async def _read(reader: asyncio.StreamReader) -> Message:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers["content-length"]))
    return Message(first.split(" ")[1], headers, body)
