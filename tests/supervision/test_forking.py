"""Programs as forks of the fork server: each is like one that was started from the command line, and no worse."""

import asyncio
import json
import os
import re
import secrets
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from support.processes.up_process import has_ended, status_of, until

from soundmark.kit.clock import SystemClock
from soundmark.kit.http.server.sockets import reserve_port
from soundmark.supervision import forking
from soundmark.supervision.forking import ForkServer
from soundmark.supervision.plan import foreign_environ
from soundmark.supervision.supervisor import Process, Program, Supervisor, soundmark

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")

CREDENTIAL = secrets.token_hex(16)


@pytest.fixture
async def fork_server() -> AsyncIterator[ForkServer]:
    """A fork server that has not started yet."""
    made = ForkServer(None, foreign_environ())
    yield made
    await made.close()


@pytest.fixture
def list_children() -> Callable[[], list[psutil.Process]]:
    """List the processes that this one has started since, without those of other tests."""
    before = psutil.Process().children()
    return lambda: [each for each in psutil.Process().children() if each not in before]


def free_port() -> str:
    with reserve_port("127.0.0.1", 0) as held:
        return str(held.getsockname()[1])


def audio(*, stop_signal: signal.Signals = signal.SIGTERM) -> Program:
    """Return an Audio with a secret, on a free port."""
    argv = soundmark("serve", "audio", "--port", free_port())
    environ = {**foreign_environ(), "SOUNDMARK_AUDIO_CREDENTIAL": CREDENTIAL}
    return Program("audio", argv, environ, stop_signal=stop_signal)


def wrong() -> Program:
    """Return a program that Typer refuses: exit status 2."""
    return Program("wrong", soundmark("serve", "nothing"), foreign_environ())


def find_fork_server() -> psutil.Process:
    (found,) = [each for each in psutil.Process().children() if "soundmark.supervision.fork_server" in each.cmdline()]
    return found


async def until_serving(program: Program) -> None:
    port = program.argv[-1]
    await until_so(lambda: status_of(f"http://127.0.0.1:{port}/healthz") == 200)


async def until_so(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(condition):
            await asyncio.to_thread(select.select, [], [], [], 0.02)


async def end(process: Process) -> int:
    process.send_signal(signal.SIGTERM)
    return await process.wait()


def until_left_alone(pid: int) -> None:
    """Wait until the server has closed the connection that asked for its health."""
    process = psutil.Process(pid)
    until(lambda: {each.status for each in process.net_connections("tcp")} == {psutil.CONN_LISTEN}, 60)


def describe(pid: int) -> dict[str, object]:
    """Return what anybody can see of a process, without what is of the moment."""
    folder = Path("/proc", str(pid))
    status = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines())
    names = ("Name", "Umask", "PPid", "Uid", "Gid", "Groups", "SigBlk", "SigIgn", "SigCgt", "CapEff", "NoNewPrivs")
    files = [str(each.readlink()) for each in (folder / "fd").iterdir()]
    return {
        **{name: status[name] for name in names},
        "cmdline": (folder / "cmdline").read_bytes(),
        "environ": sorted((folder / "environ").read_bytes().split(b"\0")),
        "cwd": (folder / "cwd").readlink(),
        "session": os.getsid(pid) == pid,
        "group": os.getpgid(pid) == pid,
        "limits": (folder / "limits").read_text(),
        "files": sorted(re.sub(r"\[\d+\]", "", name) for name in files),
    }


# With the loop of `up`: uvloop, which runs these tests, lets the processes that it starts inherit open files.
BOTH_WAYS = """
import asyncio, sys
from soundmark.supervision.forking import ForkServer
from soundmark.supervision.plan import foreign_environ
from soundmark.supervision.supervisor import Program, soundmark, spawn

async def main():
    fork_server = ForkServer(None, foreign_environ())
    argv = soundmark("serve", "audio", "--port", sys.argv[1])
    environ = {**foreign_environ(), "SOUNDMARK_AUDIO_CREDENTIAL": sys.argv[2]}
    for start in (spawn, fork_server.start):
        process = await start(Program("audio", argv, environ))
        print(process.pid, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        process.send_signal(15)
        assert await process.wait() == 0
    await fork_server.close()

asyncio.run(main())
"""


def test_a_fork_is_what_the_command_line_would_have_started() -> None:
    """Its names, environment, user, signals, limits and open files: nothing of the fork server is left."""
    port = free_port()
    command = [sys.executable, "-c", BOTH_WAYS, port, CREDENTIAL]
    seen = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            until(lambda: status_of(f"http://127.0.0.1:{port}/healthz") == 200, 60)
            until_left_alone(int(line))
            seen.append(describe(int(line)))
            process.stdin.write("\n")
            process.stdin.flush()
    started, forked = seen
    assert forked == started
    assert process.returncode == 0


async def test_a_fork_shows_its_command_line_as_soon_as_it_has_started(fork_server: ForkServer) -> None:
    process = await fork_server.start(audio())
    assert psutil.Process(process.pid).cmdline()[:-1] == list(audio().argv[:-1])
    process.send_signal(signal.SIGKILL)
    await process.wait()


async def test_the_end_of_a_fork_is_that_of_its_command(
    list_children: Callable[[], list[psutil.Process]], fork_server: ForkServer
) -> None:
    assert await (await fork_server.start(wrong())).wait() == 2
    program = audio()
    process = await fork_server.start(program)
    await until_serving(program)
    process.send_signal(signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL
    process.send_signal(signal.SIGTERM)
    assert list_children() == [find_fork_server()], "each is collected"


async def test_the_fork_server_never_holds_a_secret(fork_server: ForkServer) -> None:
    """Otherwise every later fork would have the secrets of all before."""
    program = audio()
    process = await fork_server.start(program)
    await until_serving(program)
    assert CREDENTIAL.encode() in memory_of(process.pid), "or the search is blind"
    assert CREDENTIAL.encode() not in memory_of(find_fork_server().pid)
    assert await end(process) == 0


def memory_of(pid: int) -> bytes:
    """Return everything that a process can write to."""
    parts = []
    with Path("/proc", str(pid), "mem").open("rb", buffering=0) as memory:
        for line in Path("/proc", str(pid), "maps").read_text().splitlines():
            place, rights = line.split()[:2]
            if rights.startswith("rw"):
                start, stop = (int(each, 16) for each in place.split("-"))
                memory.seek(start)
                parts.append(memory.read(stop - start))
    return b"".join(parts)


DRAWS = """
import json, os, random, secrets, ssl, uuid
import soundmark.cli.serve
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nacl.signing import SigningKey

def draw():
    key = Ed25519PrivateKey.generate().private_bytes_raw().hex()
    signing_key = SigningKey.generate().encode().hex()
    return [random.random(), secrets.token_hex(), uuid.uuid4().hex, ssl.RAND_bytes(16).hex(), signing_key, key]

draw()
for _ in range(2):
    if os.fork() == 0:
        print(json.dumps(draw()), flush=True)
        os._exit(0)
    os.wait()
"""


def test_forks_have_random_numbers_of_their_own() -> None:
    """Of each generator that our processes use: a fork that repeats another's would make the same keys."""
    done = subprocess.run([sys.executable, "-c", DRAWS], capture_output=True, text=True, check=True)
    first, second = map(json.loads, done.stdout.splitlines())
    assert len(set(first) | set(second)) == 2 * 6


async def test_forks_outlive_their_fork_server_and_what_starts_later_is_not_forked(
    list_children: Callable[[], list[psutil.Process]], fork_server: ForkServer, capsys: pytest.CaptureFixture[str]
) -> None:
    program = audio()
    process = await fork_server.start(program)
    await until_serving(program)
    find_fork_server().kill()
    assert await (await fork_server.start(wrong())).wait() == 2
    assert "not_forked" in "".join(capsys.readouterr())
    assert await (await fork_server.start(wrong())).wait() == 2
    assert capsys.readouterr().out == ""
    await fork_server.close()
    assert [each.pid for each in list_children()] == [process.pid]
    assert status_of(f"http://127.0.0.1:{program.argv[-1]}/healthz") == 200
    assert await end(process) == 0


async def test_what_is_not_ours_is_not_forked(
    list_children: Callable[[], list[psutil.Process]], fork_server: ForkServer, tmp_path: Path
) -> None:
    foreign = Program("foreign", ("/bin/sh", "-c", "exit 3"), {})
    with_errors = replace(wrong(), errors=tmp_path / "errors")
    assert [await (await fork_server.start(each)).wait() for each in (foreign, with_errors)] == [3, 2]
    assert "nothing" in (tmp_path / "errors").read_text()
    assert list_children() == []


async def test_a_fork_server_that_does_not_answer_delays_but_prevents_no_start(
    list_children: Callable[[], list[psutil.Process]],
    fork_server: ForkServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await (await fork_server.start(wrong())).wait()
    monkeypatch.setattr(forking, "_FORK_TIMEOUT_S", 0.1)
    find_fork_server().suspend()
    assert await (await fork_server.start(wrong())).wait() == 2
    assert "not_forked" in "".join(capsys.readouterr())
    await fork_server.close()
    assert list_children() == []


async def test_a_fork_server_that_cannot_start_is_tried_once(capsys: pytest.CaptureFixture[str]) -> None:
    broken = ForkServer(None, {"PYTHONHOME": "/nonexistent"})
    assert [await (await broken.start(wrong())).wait() for _ in range(2)] == [2, 2]
    assert "".join(capsys.readouterr()).count("not_forked") == 1
    await broken.close()


async def test_where_the_kernel_lacks_what_it_needs_programs_start_as_usual(
    list_children: Callable[[], list[psutil.Process]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "can_set_command_line", lambda: False)
    fork_server = ForkServer(None, foreign_environ())
    assert await (await fork_server.start(wrong())).wait() == 2
    assert list_children() == []
    await fork_server.close()


async def test_a_fork_that_does_not_stop_in_time_is_killed(fork_server: ForkServer) -> None:
    program = audio()
    draining = replace(program, environ={**program.environ, "SOUNDMARK_DRAIN_S": "600"}, grace_s=0.2)
    supervisor = Supervisor(SystemClock(), fork_server.start)
    supervisor.keep(draining)
    await until_serving(draining)
    (process,) = (each for each in psutil.Process().children() if "audio" in each.cmdline())
    await supervisor.stop(["audio"])
    assert supervisor.names() == []
    assert not process.is_running()


KEEPING = """
import asyncio, sys
from soundmark.kit.clock import SystemClock
from soundmark.supervision.forking import ForkServer
from soundmark.supervision.plan import foreign_environ
from soundmark.supervision.supervisor import Program, Supervisor, soundmark

async def main():
    fork_server = ForkServer(None, foreign_environ())
    environ = {**foreign_environ(), "SOUNDMARK_AUDIO_CREDENTIAL": "a-credential-of-audio"}
    argv = soundmark("serve", "audio", "--port", sys.argv[1])
    Supervisor(SystemClock(), fork_server.start).keep(Program("audio", argv, environ))
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_forks_and_fork_server_end_when_the_supervisor_is_killed() -> None:
    port = free_port()
    with subprocess.Popen([sys.executable, "-c", KEEPING, port]) as parent:
        until(lambda: status_of(f"http://127.0.0.1:{port}/healthz") == 200, 60)
        children = psutil.Process(parent.pid).children(recursive=True)
        parent.kill()
    assert len(children) == 2
    until(lambda: all(has_ended(child) for child in children), 60)
