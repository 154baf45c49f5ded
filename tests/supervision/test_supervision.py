"""The supervisor with programs of a few lines; `test_up` runs it with the real ones."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest
from support.processes.up_process import has_ended, until

from soundmark.kit.clock import SystemClock
from soundmark.supervision.readiness import ENDS_MAX, NotReady, until_ready
from soundmark.supervision.supervisor import BACKOFF_MIN_S, Program, Supervisor


@pytest.fixture
async def supervisor() -> AsyncIterator[Supervisor]:
    """A supervisor without processes."""
    made = Supervisor(SystemClock())
    yield made
    await made.stop(made.names())


def program(name: str, script: str, *arguments: str, grace_s: float = 10) -> Program:
    return Program(name, (sys.executable, "-c", script, *arguments), dict(os.environ), grace_s=grace_s)


async def until_so(condition: Callable[[], bool]) -> None:
    """Return once the supervisor, which runs in this loop, has brought about `condition`."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.to_thread(select.select, [], [], [], 0.01)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


NOTES_ITS_PID = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'a'), flush=True)\n"


async def test_a_program_that_ends_is_started_again(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.keep(program("short", NOTES_ITS_PID, str(tmp_path / "pids")))
    await until_so(lambda: len(lines(tmp_path / "pids")) >= 3)
    assert supervisor.ends_count("short") >= 2
    assert supervisor.last_end("short") == "exit status 0"


async def test_a_restarted_program_is_a_new_process_and_has_not_failed(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.keep(program("long", NOTES_ITS_PID + "time.sleep(60)", str(tmp_path / "pids")))
    await until_so(lambda: len(lines(tmp_path / "pids")) == 1)
    await supervisor.restart(["long"])
    await until_so(lambda: len(lines(tmp_path / "pids")) == 2)
    assert not psutil.pid_exists(int(lines(tmp_path / "pids")[0]))
    assert supervisor.ends_count("long") == 0


async def test_the_pauses_grow_so_that_a_broken_program_does_not_eat_the_machine(supervisor: Supervisor) -> None:
    clock = SystemClock()
    started_s = clock.monotonic_s()
    supervisor.keep(Program("missing", ("/nonexistent/program",), {}))
    await until_so(lambda: supervisor.ends_count("missing") == 3)
    assert clock.monotonic_s() - started_s >= BACKOFF_MIN_S * (1 + 2)


async def test_the_end_of_a_program_is_described_in_words(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.keep(program("long", NOTES_ITS_PID + "time.sleep(60)", str(tmp_path / "pids")))
    await until_so(lambda: len(lines(tmp_path / "pids")) == 1)
    os.kill(int(lines(tmp_path / "pids")[0]), signal.SIGKILL)
    await until_so(lambda: supervisor.last_end("long") == "killed by SIGKILL")


async def test_a_program_that_does_not_stop_in_time_is_killed_with_its_children(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    script = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, file=open(sys.argv[1], 'a'), flush=True)\n"
        "time.sleep(60)"
    )
    supervisor.keep(program("stubborn", script, str(tmp_path / "pids"), grace_s=0.2))
    await until_so(lambda: len(lines(tmp_path / "pids")) == 1)
    child = psutil.Process(int(lines(tmp_path / "pids")[0]))
    await supervisor.stop(["stubborn"])
    until(lambda: has_ended(child), 60)


async def test_a_program_that_is_stopped_while_it_waits_to_be_started_again_stays_down(supervisor: Supervisor) -> None:
    supervisor.keep(Program("missing", ("/nonexistent/program",), {}))
    await until_so(lambda: supervisor.ends_count("missing") >= 1)
    async with asyncio.timeout(30):
        await supervisor.stop(["missing"])
    assert supervisor.names() == []


async def test_each_program_has_its_own_session(supervisor: Supervisor, tmp_path: Path) -> None:
    """Ctrl-C at the terminal reaches only the supervisor, which then stops everything in order."""
    supervisor.keep(program("long", NOTES_ITS_PID + "time.sleep(60)", str(tmp_path / "pids")))
    await until_so(lambda: len(lines(tmp_path / "pids")) == 1)
    pid = int(lines(tmp_path / "pids")[0])
    assert os.getsid(pid) == pid


@pytest.mark.skipif(sys.platform != "linux", reason="no other kernel tells a child that its parent died")
def test_children_end_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, sys\n"
        "from soundmark.supervision.supervisor import Program, Supervisor\n"
        "from soundmark.kit.clock import SystemClock\n"
        "async def main():\n"
        "    argv = (sys.executable, '-c', sys.argv[1], sys.argv[2])\n"
        "    Supervisor(SystemClock()).keep(Program('long', argv, dict(os.environ)))\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())"
    )
    arguments = [NOTES_ITS_PID + "time.sleep(60)", str(tmp_path / "pids")]
    with subprocess.Popen([sys.executable, "-c", script, *arguments]) as parent:
        until(lambda: len(lines(tmp_path / "pids")) == 1, 20)
        child = psutil.Process(int(lines(tmp_path / "pids")[0]))
        parent.kill()
    until(lambda: has_ended(child), 60)


async def test_a_program_that_keeps_ending_is_named_before_the_timeout(supervisor: Supervisor) -> None:
    supervisor.keep(program("broken", "raise SystemExit(3)"))
    with pytest.raises(NotReady, match=r"^broken keeps exiting \(exit status 3\)$"):
        await until_ready(supervisor, SystemClock(), {"broken": lambda: False})
    assert supervisor.ends_count("broken") >= ENDS_MAX


async def test_a_program_that_is_never_ready_is_named_at_the_timeout(supervisor: Supervisor) -> None:
    class Hurrying:
        """A clock on which half a minute passes between two readings."""

        def __init__(self) -> None:
            self.looks_count = 0

        def now(self) -> None:
            raise AssertionError("nobody asks for the time of day")

        def monotonic_s(self) -> float:
            self.looks_count += 1
            return self.looks_count * 30.0

    supervisor.keep(program("silent", "import time; time.sleep(60)"))
    with pytest.raises(NotReady, match=r"^silent was not ready within 60 seconds$"):
        await until_ready(supervisor, Hurrying(), {"silent": lambda: False})
