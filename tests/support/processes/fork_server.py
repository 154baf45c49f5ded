"""Forks a `soundmark` process for each connection: `python fork_server.py LISTENING MODULES`.

The server has one thread and has imported the modules, and does nothing else. A command runs in its own process, with
the arguments, environment, folder and streams that it is sent, as `python -m soundmark` would run it. It ends when the
other side hangs up.
"""

import atexit
import contextlib
import gc
import importlib
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from command_protocol import receive_command, send_number


@dataclass(frozen=True, slots=True)
class _Command:
    """A running command and the connection that asked for it."""

    connection: socket.socket
    pid: int
    pidfd: int  # Readable when the process has ended.


def serve(listening: socket.socket) -> None:
    """Fork a process for each connection, until killed."""
    with selectors.DefaultSelector() as selector:
        selector.register(listening, selectors.EVENT_READ)
        while True:
            (key, _), *_ = selector.select()  # One at a time: carrying it out may make the others untrue.
            if key.data is None:
                _start(listening.accept()[0], selector)
            elif key.fileobj is key.data.connection:  # The test hangs up.
                selector.unregister(key.data.connection)
                signal.pidfd_send_signal(key.data.pidfd, signal.SIGKILL)
            else:
                _finish(key.data, selector)


def _start(connection: socket.socket, selector: selectors.BaseSelector) -> None:
    """Run the command of a connection in a fork and send its process id."""
    try:
        body, streams = receive_command(connection)
    except EOFError:
        connection.close()
        return
    pid = os.fork()
    if pid == 0:
        connection.close()
        _close_all(selector)
        os._exit(_run(body, streams))
    for stream in streams:
        os.close(stream)
    command = _Command(connection, pid, os.pidfd_open(pid))
    selector.register(connection, selectors.EVENT_READ, command)
    selector.register(command.pidfd, selectors.EVENT_READ, command)
    with contextlib.suppress(ConnectionError):  # Hanging up is the selector's business.
        send_number(connection, pid)


def _finish(command: _Command, selector: selectors.BaseSelector) -> None:
    """Send the exit status of a command that has ended, unless the test has hung up."""
    selector.unregister(command.pidfd)
    os.close(command.pidfd)
    _, status = os.waitpid(command.pid, 0)
    with command.connection:
        if command.connection in selector.get_map():
            selector.unregister(command.connection)
            with contextlib.suppress(ConnectionError):  # It may hang up just now.
                send_number(command.connection, os.waitstatus_to_exitcode(status))


def _close_all(selector: selectors.BaseSelector) -> None:
    """Close what a fork has of the server."""
    for key in selector.get_map().values():
        if isinstance(key.fileobj, socket.socket):
            key.fileobj.close()
        else:
            os.close(key.fd)
    selector.close()


def _run(body: Mapping[str, Any], streams: Sequence[int]) -> int:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(body["cwd"])
    os.environ.clear()
    os.environ.update(body["environ"])
    sys.argv = [body["script"] or "soundmark", *body["arguments"]]
    status: object = 0
    try:
        if body["script"]:
            runpy.run_path(body["script"], run_name="__main__")
        else:
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
    del sys.path[0]  # The folder of this program: its modules are not those of a command.
    for name in sys.argv[2:]:
        importlib.import_module(name)
    # So that a collection in a command does not write to the pages that it shares with the server.
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
