"""`soundmark up` as a person runs it: the real command in its own processes, on a data dir of the test."""

import contextlib
import http.client
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import psutil
import psycopg

from support.processes.command_server import find_forked_soundmark

# The processes that it supervises, as `Up.children` names them.
PROCESSES = [
    "serve core",
    "serve audience",
    "serve audio",
    "serve console",
    "work core",
    "work audience",
    "postgres",
]
READY_S = 60
END_S = 40

Answer = TypeVar("Answer")


class Up:
    """A running `soundmark up`."""

    def __init__(self, process: subprocess.Popen[bytes], data_dir: Path, output: Path) -> None:
        self.process = process
        self.data_dir = data_dir
        self.output = output
        self.up_file = data_dir / "up.json"

    @property
    def where(self) -> dict[str, Any]:
        return json.loads(self.up_file.read_text())

    @property
    def printed(self) -> str:
        return self.output.read_text()

    def children(self) -> dict[str, psutil.Process]:
        """Return the processes that it supervises, by their role."""
        found = {}
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.status() != psutil.STATUS_ZOMBIE:
                    found[_role(child.cmdline())] = child
        return found

    def owners(self) -> set[int]:
        """Return the users that its processes run as."""
        return set(each_still_there(self.everything(), lambda process: process.uids().real))

    def everything(self) -> list[psutil.Process]:
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    def until_ready(self) -> "Up":
        until(self._is_ready, READY_S)
        # Nothing needs the workers to be ready, but tests look for every process.
        until(lambda: set(PROCESSES) <= set(self.children()), READY_S)
        return self

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.printed
        with contextlib.suppress(FileNotFoundError):
            return bool(self.where["pid"] == self.process.pid)
        return False

    def answers(self, component: str) -> bool:
        return status_of(self.where[f"{component}_url"] + "/readyz") == 200

    def stop(self, signum: signal.Signals = signal.SIGTERM) -> int:
        """Stop it and return its exit status; none of its processes is left."""
        everything = self.everything() if self.process.poll() is None else []
        self.process.send_signal(signum)
        status = self.process.wait(END_S)
        until(lambda: all(has_ended(process) for process in everything), END_S)
        return status


def _role(command: Sequence[str]) -> str:
    if "-m" in command:
        return " ".join(command[command.index("-m") + 2 :][:2])
    # The server, which has a data directory; `up` asks the program for its version too.
    return Path(command[0]).name if "-D" in command else ""


def until(condition: Callable[[], bool], timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"still not so after {timeout_s} s"
        select.select([], [], [], 0.02)


def each_still_there(processes: Iterable[psutil.Process], ask: Callable[[psutil.Process], Answer]) -> list[Answer]:
    """Return the answers of the processes that still run: those of PostgreSQL come and go."""
    answers = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            answers.append(ask(process))
    return answers


def has_ended(process: psutil.Process) -> bool:
    """Return whether the process has ended; it may be waiting to be collected."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def status_of(url: str) -> int | None:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def clean_environ(more: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SOUNDMARK_")}
    return {**kept, **(more or {})}


SOUNDMARK = (sys.executable, "-P", "-m", "soundmark")


def _may_serve_as_root(command: Sequence[str]) -> Sequence[str]:
    """Return the option that root needs for our own installation, which may be in a private folder."""
    return ["--serve-as-root"] if command is SOUNDMARK else []


@contextlib.contextmanager
def running_up(
    data_dir: Path,
    *,
    command: Sequence[str] = SOUNDMARK,
    arguments: Sequence[str] = ("--port", "0"),
    environ: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator[Up]:
    """Start `soundmark up`; none of its processes outlives the block."""
    with tempfile.NamedTemporaryFile(suffix=".txt") as output:
        process = subprocess.Popen(
            [*command, "up", "--data-dir", str(data_dir), *_may_serve_as_root(command), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=clean_environ(environ),
            **options,
        )
        up = Up(process, data_dir, Path(output.name))
        try:
            yield up
        finally:
            if process.poll() is None:
                try:
                    up.stop()
                except BaseException:
                    with contextlib.suppress(psutil.NoSuchProcess):  # It may be what of it is left that did not end.
                        each_still_there(up.everything(), psutil.Process.kill)
                    process.wait()
                    raise


def refused_up(
    data_dir: Path,
    *arguments: str,
    command: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> str:
    """Return the one line with which `up` refuses to run: in a fork, unless `command` is another installation's."""
    if command is None:
        command, arguments = (find_forked_soundmark(),), ("--serve-as-root", *arguments)
    done = subprocess.run(
        [*command, "up", "--data-dir", str(data_dir), *arguments],
        check=False,
        capture_output=True,
        env=clean_environ(environ),
        timeout=READY_S,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    return line


@contextlib.contextmanager
def passable_folder() -> Iterator[Path]:
    """Make a folder that every user may pass through, unlike pytest's own; in memory where there is room.

    `up` writes thousands of files, and a busy disk takes seconds to sync and remove them. That a killed process loses
    nothing does not depend on the file system.
    """
    memory = Path("/dev/shm")  # noqa: S108 - the folder in it is made by mkdtemp
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    path = Path(tempfile.mkdtemp(prefix="soundmark-test-", dir=memory if roomy else None))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def write_note(up: Up, text: str) -> None:
    with psycopg.connect(up.where["core_database_url"], autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS remembered (text text)")
        connection.execute("INSERT INTO remembered VALUES (%s)", [text])


def read_notes(up: Up) -> list[str]:
    with psycopg.connect(up.where["core_database_url"]) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM remembered ORDER BY text").fetchall()]
