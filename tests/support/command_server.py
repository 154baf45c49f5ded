"""Forks a `soundmark` process for each command of the tests: most of a command's time would go into its imports.

The server has one thread and has imported the product, or given libraries alone, and does nothing else. A command runs
in its own process, with the arguments, environment and folder that the test sends, as `python -m soundmark` would run
it. It ends when the test hangs up.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import soundmark.cli


@contextlib.contextmanager
def running_command_server(modules: Sequence[str] = ()) -> Iterator[Path]:
    """Start a server and yield its socket; it imports these modules, or those of every command if none is named."""
    with tempfile.TemporaryDirectory(prefix="soundmark-commands-") as folder:
        path = Path(folder) / "socket"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen(64)
            # OpenBLAS would start threads, which a fork does not copy.
            environ = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
            process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(listening.fileno()), *modules],
                pass_fds=[listening.fileno()],
                stdin=subprocess.DEVNULL,
                env=environ,
            )
        try:
            yield path
        finally:
            process.kill()
            process.wait()


def run_command(
    path: Path, arguments: Sequence[str], environ: Mapping[str, str], *, timeout_s: float
) -> tuple[int, str, str]:
    """Run a command to its end; return its exit status and what it printed on both streams.

    Raises: TimeoutError; the command ends then.
    """
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as connection:
        out, err = Path(folder) / "out", Path(folder) / "err"
        body = {
            "arguments": arguments,
            "environ": dict(environ),
            "cwd": str(Path.cwd()),
            "out": str(out),
            "err": str(err),
        }
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(json.dumps(body).encode() + b"\n")
        with connection.makefile("r") as lines:
            status = int(lines.readline())
        return status, out.read_text("utf-8"), err.read_text("utf-8")


def serve(listening: socket.socket) -> None:
    """Fork a process for each connection, until killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody waits for those processes.
    while True:
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            os._exit(_attend(connection))
        connection.close()


def _attend(connection: socket.socket) -> int:
    """Run the command of one connection and send its exit status; end the command if the test hangs up."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection.makefile("r") as lines:
        body = json.loads(lines.readline())
    # The command holds the only end to write to, so the other one is readable when it has ended.
    ended, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        connection.close()
        os.close(ended)
        os._exit(_run(body))
    os.close(held)
    hung_up = connection in select.select([ended, connection], [], [])[0]
    if hung_up:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not hung_up:
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    return 0


def _run(body: Mapping[str, Any]) -> int:
    for name, stream in (("out", 1), ("err", 2)):
        opened = os.open(body[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, stream)
        os.close(opened)
    os.chdir(body["cwd"])
    os.environ.clear()
    os.environ.update(body["environ"])
    sys.argv = ["soundmark", *body["arguments"]]
    status: object = 0
    try:
        runpy.run_module("soundmark", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        status = ended.code
    except BaseException:  # noqa: BLE001 - the interpreter would print it and end too
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # the interpreter does it at its end
    atexit._run_exitfuncs()
    if isinstance(status, str):
        sys.stderr.write(status + "\n")
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return int(status or 0)  # type: ignore[call-overload]  # a number or None


if __name__ == "__main__":
    # The last one is what the HTTP client imports with its first connection.
    every = [module.name for module in pkgutil.iter_modules(soundmark.cli.__path__, "soundmark.cli.")] + ["httpcore2"]
    for name in sys.argv[2:] or every:
        importlib.import_module(name)
    # So that a collection in a command does not write to the pages that it shares with the server.
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
