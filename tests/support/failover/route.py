"""The way from a process to another, which a test switches, cuts and makes silent, as a proxy or a network would."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from typing import Final, Literal, Self

from soundmark.embedded.postgres import HOST

State = Literal["open", "refusing", "silent"]


class Route:
    """A proxy of connections on a port of its own, where a process believes its database, or a component, to be."""

    def __init__(self, *target_ports: int) -> None:
        self._targets: Iterator[int] = itertools.cycle(target_ports)
        self._state: State = "open"
        self._server: asyncio.Server | None = None
        self._passing: Final[set[asyncio.Task[None]]] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None, "it was entered"
        self._server.close()
        await self._end_connections()

    @property
    def url(self) -> str:
        """The URL of the component that it leads to."""
        return f"http://{HOST}:{self.port}"

    def lead(self, *target_ports: int) -> None:
        """Lead new connections to these servers in turn; those that are open stay where they are."""
        self._targets = itertools.cycle(target_ports)

    async def switch(self, target_port: int) -> None:
        """Lead to another server from now on, and end the connections to the one before."""
        self.lead(target_port)
        await self.set("open")
        await self._end_connections()

    async def set(self, state: State) -> None:
        """Let connections pass, refuse them and end those that are open, or swallow what is sent over them."""
        self._state = state
        if state == "refusing":
            await self._end_connections()

    async def _end_connections(self) -> None:
        passing = list(self._passing)
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "the server runs this as a task"
        self._passing.add(task)
        writers = [writer]
        try:
            if self._state == "refusing":
                return
            upstream_reader, upstream_writer = await asyncio.open_connection(HOST, next(self._targets))
            writers.append(upstream_writer)
            both = (self._pass(reader, upstream_writer), self._pass(upstream_reader, writer))
            passing = [asyncio.create_task(each) for each in both]
            try:
                await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in passing:
                    each.cancel()
                await asyncio.gather(*passing, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # The server is down, or the connection is ended; either way, the client sees an end.
        finally:
            self._passing.discard(task)
            for each in writers:
                each.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self._state == "silent":
                    continue  # Lost, as in a network that drops everything.
                writer.write(data)
                await writer.drain()
