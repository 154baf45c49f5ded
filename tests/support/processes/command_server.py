"""Commands of `soundmark` in forks of one process: most of a command's time would go into its imports.

`fork_server` is that process. The tests of a worker share one, except where they state what is imported.
"""

import contextlib
import functools
import os
import pkgutil
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import soundmark.cli
from support.processes.command_protocol import receive_number, send_command

# What every command may import: each module of the command line, each root, and what an HTTP client imports late.
_ROOTS: Final = ("soundmark.core.app", "soundmark.core.worker", "soundmark.audience.app", "soundmark.audience.worker")
_EVERYTHING: Final = (
    *(module.name for module in pkgutil.iter_modules(soundmark.cli.__path__, "soundmark.cli.")),
    *_ROOTS,
    "httpcore2",
)
_FORK_SERVER: Final = Path(__file__).with_name("fork_server.py")
_FORKED_SOUNDMARK: Final = Path(__file__).with_name("forked_soundmark.py")
# OpenBLAS would start threads, which a fork does not copy. A heap in huge pages is forked in half the time.
_EASILY_FORKED: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONMALLOC": "malloc",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
_shared: Final = contextlib.ExitStack()


@contextlib.contextmanager
def running_command_server(modules: Sequence[str] = _EVERYTHING, *, python_path: Path | None = None) -> Iterator[Path]:
    """Start a server that imports these modules, first from `python_path`, and yield its socket."""
    with tempfile.TemporaryDirectory(prefix="soundmark-commands-") as folder:
        path = Path(folder) / "socket"
        _write_command(path)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen(64)
            environ = {**os.environ, **_EASILY_FORKED}
            if python_path is not None:
                environ["PYTHONPATH"] = str(python_path)
            process = subprocess.Popen(
                [sys.executable, str(_FORK_SERVER), str(listening.fileno()), *modules],
                pass_fds=[listening.fileno()],
                stdin=subprocess.DEVNULL,
                env=environ,
            )
        try:
            yield path
        finally:
            process.kill()
            process.wait()


def _write_command(path: Path) -> None:
    """Put a `soundmark` into the folder `bin` beside the socket, for shells: it runs in a fork too."""
    program = path.parent / "bin" / "soundmark"
    program.parent.mkdir()
    command = [sys.executable, "-S", "-E", "-s", str(_FORKED_SOUNDMARK), str(path)]
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    program.chmod(0o755)


@functools.cache
def share_command_server() -> Path:
    """Return the socket of the worker's server, which starts with the first test that needs it."""
    return _shared.enter_context(running_command_server())


def find_forked_soundmark() -> str:
    """Return the program that runs `soundmark` in a fork, for a test that starts it as a process of its own."""
    return str(share_command_server().parent / "bin" / "soundmark")


def close_command_server() -> None:
    """Stop the worker's server."""
    _shared.close()
    share_command_server.cache_clear()


class ForkedCommand:
    """A running command, with what tests need of `subprocess.Popen`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection: Final = connection
        self.returncode: int | None = None
        self.pid: Final = receive_number(connection)

    def poll(self) -> int | None:
        """Return the exit status, None while the command runs."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self.returncode = receive_number(self._connection)
        return self.returncode

    def wait(self, timeout_s: float | None = None) -> int:
        """Return the exit status when the command has ended.

        Raises: TimeoutError.
        """
        if self.returncode is None and not select.select([self._connection], [], [], timeout_s)[0]:
            raise TimeoutError
        status = self.poll()
        assert status is not None, "it has just been sent"
        return status

    def send_signal(self, signum: int) -> None:
        """Send the command a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # It may end between the two.
                os.kill(self.pid, signum)

    def kill(self) -> None:
        """End the command at once, unless it has ended."""
        self.send_signal(signal.SIGKILL)


@contextlib.contextmanager
def running_command(
    path: Path,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    script: Path | None = None,
    streams: tuple[str, str] = (os.devnull, os.devnull),
) -> Iterator[ForkedCommand]:
    """Run `soundmark`, or a Python script, until the block ends; `streams` are the files that it prints to."""
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(socket.socket(socket.AF_UNIX))
        connection.connect(str(path))
        files = [stack.enter_context(Path(os.devnull).open("rb"))]
        files += [stack.enter_context(Path(name).open("wb")) for name in streams]
        name = None if script is None else str(script)
        send_command(connection, arguments, environ, streams=[file.fileno() for file in files], script=name)
        command = ForkedCommand(connection)
        try:
            yield command
        finally:
            command.kill()
            command.wait()


def run_command(
    path: Path,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    timeout_s: float,
    script: Path | None = None,
) -> tuple[int, str, str]:
    """Run `soundmark`, or a Python script, to its end; return its exit status and what it printed on both streams.

    Raises: TimeoutError; the command ends then.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        with running_command(path, arguments, environ, script=script, streams=(str(out), str(err))) as command:
            status = command.wait(timeout_s)
        return status, out.read_text("utf-8"), err.read_text("utf-8")
