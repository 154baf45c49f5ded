"""The processes of a deployment, which can be killed or restarted, and start again at another address."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

import httpx2

from support.failover.route import Route
from support.processes.command_server import ForkedCommand

Starting = Callable[[], contextlib.AbstractContextManager[tuple[str, ForkedCommand]]]
_END_S: Final = 60
_READY_S: Final = 60
_CHECK_EVERY_S: Final = 0.1


class Member:
    """A process of the deployment; `starting` yields its URL, if it serves, and itself."""

    def __init__(self, starting: Starting) -> None:
        self.starting = starting
        self.url = ""
        self._process: ForkedCommand | None = None
        self._stack: Final = contextlib.ExitStack()

    @property
    def process(self) -> ForkedCommand:
        """The process of the last start."""
        assert self._process is not None, "it was started"
        return self._process

    @property
    def port(self) -> int:
        """The port of the last start."""
        return urlsplit(self.url).port or 0

    def start(self) -> None:
        self.url, self._process = self._stack.enter_context(self.starting())

    def stop(self) -> None:
        """Kill the process, if it runs."""
        self._stack.close()

    def restart_after_kill(self) -> None:
        """End the process at once, as a crash does, and start it again."""
        self.stop()
        self.start()

    def restart(self) -> None:
        """End the process as an operator does, and start it again."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(_END_S) == 0
        self.restart_after_kill()


async def roll(members: Sequence[Member], starting: Starting) -> None:
    """Restart one after the other, as `starting` says, and wait until each is ready before the next."""
    async with httpx2.AsyncClient(trust_env=False) as client:
        for member in members:
            member.starting = starting
            await asyncio.to_thread(member.restart)
            async with asyncio.timeout(_READY_S):
                while member.url and not await _is_ready(client, member):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(_CHECK_EVERY_S)


@contextlib.asynccontextmanager
async def balanced(route: Route, members: Sequence[Member]) -> AsyncIterator[None]:
    """Lead new connections to the members that are ready, until the block ends."""
    checking = asyncio.create_task(_follow(route, members))
    try:
        yield
    finally:
        checking.cancel()
        await asyncio.gather(checking, return_exceptions=True)


async def _follow(route: Route, members: Sequence[Member]) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        while True:
            ready = [member.port for member in members if await _is_ready(client, member)]
            if ready:
                route.lead(*ready)
            await asyncio.sleep(_CHECK_EVERY_S)


async def _is_ready(client: httpx2.AsyncClient, member: Member) -> bool:
    try:
        return (await client.get(f"{member.url}/readyz")).status_code == httpx2.codes.OK
    except httpx2.TransportError:
        return False
