"""Processes that are kept running until they are stopped."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from soundmark.kit.clock import Clock
from soundmark.operating_system.files import open_trusted
from soundmark.operating_system.os_user import OsUser, spawn_environ, spawn_options
from soundmark.operating_system.parent_death_signal import make_parent_death_signal

BACKOFF_MIN_S: Final = 0.1
BACKOFF_MAX_S: Final = 5.0
STEADY_AFTER_S: Final = 10.0
_KILL_WAIT_S: Final = 5.0

_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Program:
    """A process to keep running. Its standard error goes to the file `errors`; None: to ours."""

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str] = field(repr=False)
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 15
    user: OsUser | None = None
    errors: Path | None = None
    before_start: Callable[[], None] | None = None


class Process(Protocol):
    """A started program."""

    @property
    def pid(self) -> int:
        """The process id, also that of its session and process group."""
        ...

    def send_signal(self, signum: int, /) -> None:
        """Send it a signal. Raises: ProcessLookupError."""

    async def wait(self) -> int:
        """Return its exit status when it has ended; -9 if signal 9 ended it."""
        ...


@dataclass(slots=True)
class _KeptProgram:
    program: Program
    stopping: asyncio.Event
    started: asyncio.Event
    process: Process | None = None
    ends_count: int = 0
    last_end: str = ""
    keeper: asyncio.Task[None] | None = None


class Supervisor:
    """A supervisor that restarts programs when they end, with growing pauses.

    Use it from the main thread: the kernel ends the children when the thread that started them ends, and therefore
    also when we are killed. Each child leads a session of its own, so that Ctrl-C at the terminal reaches only us and
    everything ends in order.
    """

    def __init__(self, clock: Clock, start: Callable[[Program], Awaitable[Process]] | None = None) -> None:
        """Use `start` to start each program; without it, they are started by `spawn`."""
        self._clock: Final = clock
        self._start: Final = start or spawn
        self._kept: Final[dict[str, _KeptProgram]] = {}

    def keep(self, program: Program) -> None:
        """Start `program` and keep it running until `stop`."""
        assert program.name not in self._kept, f"{program.name} is already being kept"
        kept = self._kept[program.name] = _KeptProgram(program, asyncio.Event(), asyncio.Event())
        kept.keeper = asyncio.create_task(self._keep(kept), name=program.name)

    def names(self) -> list[str]:
        """Return the names of the kept programs, in the order in which they were started."""
        return list(self._kept)

    def ends_count(self, name: str) -> int:
        """Return how often the program ended by itself."""
        return self._kept[name].ends_count

    def last_end(self, name: str) -> str:
        """Return how the program last ended, in words; empty if it never did."""
        return self._kept[name].last_end

    async def until_started(self) -> None:
        """Return when each kept program has been started once, or could not be."""
        for kept in list(self._kept.values()):
            await kept.started.wait()

    async def stop(self, names: Iterable[str]) -> None:
        """Stop the named programs at the same time, and kill those that outlast their grace period."""
        chosen = [self._kept.pop(name) for name in list(names)]
        await asyncio.gather(*(self._stop(kept) for kept in chosen))

    async def restart(self, names: Iterable[str]) -> None:
        """Stop the named programs, and start them again at once."""
        programs = [self._kept[name].program for name in names]
        await self.stop(program.name for program in programs)
        for program in programs:
            self.keep(program)

    async def _keep(self, kept: _KeptProgram) -> None:
        pause_s = BACKOFF_MIN_S
        while not kept.stopping.is_set():
            started_s = self._clock.monotonic_s()
            try:
                kept.last_end = await self._run_once(kept)
            except Exception as error:  # noqa: BLE001 - whatever prevented the start may be gone at the next attempt
                kept.last_end = f"not started: {error}"
            kept.started.set()
            if kept.stopping.is_set():
                return
            kept.ends_count += 1
            if self._clock.monotonic_s() - started_s >= STEADY_AFTER_S:
                pause_s = BACKOFF_MIN_S
            _log.warning("process_ended", process=kept.program.name, how=kept.last_end, starting_again_in_s=pause_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(kept.stopping.wait(), pause_s)
            pause_s = min(pause_s * 2, BACKOFF_MAX_S)

    async def _run_once(self, kept: _KeptProgram) -> str:
        """Start the program, wait until it ends, and return how it ended."""
        if kept.program.before_start is not None:
            await asyncio.to_thread(kept.program.before_start)
        if kept.stopping.is_set():
            return "not started"
        process = await self._start(kept.program)
        kept.process = process
        kept.started.set()
        if kept.stopping.is_set():
            # `stop` was called while the process was being created, and found no process to signal.
            _send(process, kept.program.stop_signal)
        return _end_in_words(await process.wait())

    async def _stop(self, kept: _KeptProgram) -> None:
        kept.stopping.set()
        assert kept.keeper is not None, "set by keep"
        if kept.process is not None:
            _send(kept.process, kept.program.stop_signal)
        done, _ = await asyncio.wait({kept.keeper}, timeout=kept.program.grace_s)
        if not done:
            _log.warning("process_killed", process=kept.program.name, after_s=kept.program.grace_s)
            if kept.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(kept.process.pid, signal.SIGKILL)
            await asyncio.wait({kept.keeper}, timeout=_KILL_WAIT_S)
        kept.keeper.cancel()


def soundmark(*arguments: str) -> tuple[str, ...]:
    """Return a command line of `soundmark`; `-P` keeps it from importing modules from the working directory."""
    return (sys.executable, "-P", "-m", "soundmark", *arguments)


async def spawn(program: Program, *, stdin: int = asyncio.subprocess.DEVNULL) -> asyncio.subprocess.Process:
    """Start `program` once, as a child that ends with us."""
    with contextlib.ExitStack() as stack:
        errors: Any = None
        if program.errors is not None:
            handle = open_trusted(program.errors, os.O_WRONLY | os.O_CREAT, is_secret=False)
            errors = stack.enter_context(os.fdopen(handle, "wb"))
            errors.truncate()
        return await asyncio.create_subprocess_exec(
            *program.argv,
            stdin=stdin,
            stderr=errors,
            env=spawn_environ(program.user, program.environ),
            cwd="/" if program.user is not None else None,
            start_new_session=True,
            preexec_fn=make_parent_death_signal(program.stop_signal),
            **spawn_options(program.user),
        )


def _send(process: Process, signum: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signum)


def _end_in_words(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
