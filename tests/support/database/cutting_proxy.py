"""A proxy in front of PostgreSQL that resets connections, or holds answers back, when a test says so."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database


class CuttingProxy:
    """Passes PostgreSQL's messages on, and resets the connection in place of one of them."""

    def __init__(self, url: Secret) -> None:
        self._target = conninfo_to_dict(url.reveal())
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut_after: int | None = None  # So many answered statements; None is never.
        self.is_cutting_when_ready = False
        self.is_holding = False
        self.cuts_count = 0

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[Database]:
        """Yield a database behind the proxy."""
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            through = {"host": "127.0.0.1", "port": port, "sslmode": "disable", "gssencmode": "disable"}
            yield Database(
                Secret(make_conninfo(**{**self._target, **through})), pool_size=1, application_name="kit-test"
            )
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = str(self._target["host"]), self._target["port"]
        if host.startswith("/"):
            upstream = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            upstream = await asyncio.open_connection(host, int(port or 0))
        tasks = [
            asyncio.create_task(self._pass_requests(reader, upstream[1])),
            asyncio.create_task(self._pass_answers(upstream[0], writer)),
        ]
        self._tasks.update(tasks)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        upstream[1].close()
        writer.close()

    async def _pass_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)

    async def _pass_answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = await reader.readexactly(5)
                body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
                while self.is_holding:  # noqa: ASYNC110 - set by the test
                    await asyncio.sleep(0.005)
                is_last = self.is_cutting_when_ready and head[:1] == b"Z"
                is_cut = self.cut_after == 0 and head[:1] in b"CDZ2"
                if not is_cut:
                    writer.write(head + body)
                if is_cut or is_last:
                    self.cut_after, self.is_cutting_when_ready = None, False
                    self.cuts_count += 1
                    reset(writer)
                    return
                if self.cut_after is not None and head[:1] == b"C":
                    self.cut_after -= 1


def reset(writer: asyncio.StreamWriter) -> None:
    taken: socket.socket = writer.get_extra_info("socket")
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
