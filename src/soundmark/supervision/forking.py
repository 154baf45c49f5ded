"""Our own programs as forks of one process, the fork server, so that they share the memory of what they all import."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Final

import structlog

from soundmark.operating_system.command_line import can_set_command_line
from soundmark.operating_system.os_user import OsUser, spawn_environ
from soundmark.operating_system.parent_death_signal import adopting_orphans
from soundmark.supervision.fork_server import FORK, READY
from soundmark.supervision.supervisor import Process, Program, soundmark, spawn

_READY_TIMEOUT_S: Final = 30.0  # It imports for about a second.
_FORK_TIMEOUT_S: Final = 10.0

_log: Final = structlog.get_logger()


class ForkServer:
    """The process from which programs of `user` are forked. It starts with the first of them.

    No fork ends with it. What cannot be forked is started as usual: other people's programs, those of another user,
    everything after it was closed or has failed, and all where the kernel lacks what this needs.
    """

    def __init__(self, user: OsUser | None, environ: Mapping[str, str], *, is_used: bool = True) -> None:
        """Take the environment that all programs have in common, without a setting of ours."""
        argv = (sys.executable, "-P", "-m", "soundmark.supervision.fork_server")
        self._program: Final = Program("fork server", argv, environ, user=user)
        self._turn: Final = asyncio.Lock()
        self._is_usable = is_used and can_set_command_line()
        self._process: asyncio.subprocess.Process | None = None
        self._requests: socket.socket | None = None

    async def start(self, program: Program) -> Process:
        """Start `program` once, as a child that ends with us."""
        if program.argv[:4] == soundmark() and program.user == self._program.user and program.errors is None:
            async with self._turn:
                try:
                    if self._is_usable:
                        return await self._fork(program)
                except OSError as error:  # Or TimeoutError, which is one.
                    self._is_usable = False
                    _log.warning("not_forked", process=program.name, reason=str(error) or type(error).__name__)
        return await spawn(program)

    async def close(self) -> None:
        """End the fork server. What is started from now on is not forked."""
        async with self._turn:
            self._is_usable = False
            if self._requests is not None:
                self._requests.close()
            if self._process is not None:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()

    async def _fork(self, program: Program) -> Process:
        requests = await self._prepare()
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            with contextlib.closing(writer):
                async with asyncio.timeout(_FORK_TIMEOUT_S):
                    with adopting_orphans():
                        socket.send_fds(requests, [FORK], [theirs.fileno()])
                        theirs.close()
                        process_id = await reader.readline()
                        if not process_id:
                            raise OSError("the fork server has not forked")
                        fork = _Fork(int(process_id))
                    try:
                        await _hand_over(program, reader, writer)
                    except BaseException:
                        fork.send_signal(signal.SIGKILL)
                        raise
        return fork

    async def _prepare(self) -> socket.socket:
        """Return the socket over which the running fork server takes requests."""
        if self._requests is None:
            self._requests, theirs = socket.socketpair()
            self._requests.setblocking(False)
            with theirs:
                self._process = await spawn(self._program, stdin=theirs.fileno())
            async with asyncio.timeout(_READY_TIMEOUT_S):
                if await asyncio.get_running_loop().sock_recv(self._requests, len(READY)) != READY:
                    raise OSError("the fork server has ended")
        return self._requests


async def _hand_over(program: Program, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say what to run and return when the fork is that, or has ended."""
    request = {
        "argv": program.argv,
        "environ": spawn_environ(program.user, program.environ),
        "stop_signal": int(program.stop_signal),
    }
    with contextlib.suppress(ConnectionError):
        writer.write(json.dumps(request).encode())
        writer.write_eof()
        await reader.read()


class _Fork:
    """A child that the fork server has forked and we have adopted."""

    def __init__(self, pid: int) -> None:
        self.pid: Final = pid
        self._descriptor: Final = os.pidfd_open(pid)
        loop = asyncio.get_running_loop()
        self._status: Final[asyncio.Future[int]] = loop.create_future()
        loop.add_reader(self._descriptor, self._collect)

    def send_signal(self, signum: int) -> None:
        """Send it a signal, unless it has ended."""
        if not self._status.done():
            os.kill(self.pid, signum)

    async def wait(self) -> int:
        """Return its exit status when it has ended; -9 if signal 9 ended it."""
        return await asyncio.shield(self._status)

    def _collect(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        _, status = os.waitpid(self.pid, 0)
        self._status.set_result(os.waitstatus_to_exitcode(status))
