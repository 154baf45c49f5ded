"""A real Redis server for one test."""

import asyncio
import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from redis.asyncio import Redis
from redis.exceptions import RedisError


class RedisServer:
    """A redis-server without persistence on one loopback port; a test can stop, start and hang it."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port = port
        self.url = f"redis://127.0.0.1:{port}/0"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        options += ["--dir", str(self._folder)]
        self._process = subprocess.Popen(  # noqa: ASYNC220 - it is started, not waited for
            ["redis-server", *options], stdout=subprocess.DEVNULL
        )
        async with asyncio.timeout(60), self.client() as client:
            while True:
                with contextlib.suppress(RedisError, OSError):
                    await client.ping()
                    return
                assert self._process.poll() is None, "redis-server must start"
                await asyncio.sleep(0.01)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """Keep it from answering until the block ends."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def client(self) -> Redis:
        return Redis.from_url(self.url, socket_timeout=5)


@contextlib.asynccontextmanager
async def running_redis() -> AsyncIterator[RedisServer]:
    """Run a server until the block ends."""
    assert shutil.which("redis-server"), "redis-server is needed: `make test-tools` installs it"
    # Bound by us too and never listening, the port is nobody's but the server's, also while it is down.
    with tempfile.TemporaryDirectory() as folder, socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        found = RedisServer(reserved.getsockname()[1], Path(folder))
        try:
            await found.start()
            yield found
        finally:
            found.stop()
