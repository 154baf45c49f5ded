"""The fork server of `soundmark up`: it has imported what several processes need, and they are forks of it.

`forking` starts it with a socket as its standard input. For each message it forks once and hands the fork the socket
that came with the message, unread. From that the fork reads what to run and with which environment. So the fork server
never holds a secret, and no fork holds another's.
"""

import gc
import importlib
import json
import os
import runpy
import socket
import sys
from pathlib import Path
from typing import Any, Final

from soundmark.kit.optional_imports import UNUSED, hide_optional
from soundmark.operating_system.command_line import set_command_line
from soundmark.operating_system.parent_death_signal import request_parent_death_signal

READY: Final = b"r"
FORK: Final = b"f"

# What at least two processes import, by name, since it is above us. None of it starts a thread or opens a file.
_SHARED: Final = (
    "soundmark.cli.serve",
    "soundmark.cli.work",
    "soundmark.core.worker",
    "soundmark.audience.worker",
    "fastapi",
    "soundmark.kit.http.outbound.issuer_keys",
    "soundmark.kit.http.requests.edge",
    "uvicorn.protocols.http.httptools_impl",
)


def main() -> None:
    """Fork whenever the supervisor asks, until it closes the socket; a fork goes on as the program that it becomes."""
    gc.disable()
    supervisor = os.getppid()
    with socket.socket(fileno=os.dup(0)) as requests:
        _import_shared()
        requests.sendall(READY)
        connection = _wait_in_forks(requests)
    if connection is not None:
        with connection:
            _become_requested(connection, supervisor)
        gc.enable()
        runpy.run_module("soundmark", run_name="__main__", alter_sys=True)


def _import_shared() -> None:
    with hide_optional(*UNUSED):
        for name in _SHARED:
            importlib.import_module(name)
    set_command_line(sys.orig_argv, os.environ)  # What fails here would fail in every fork.
    gc.collect()
    gc.freeze()  # A collection in a fork would write to every object, so that nothing would be shared any longer.
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise SystemExit("an import has started a thread, which forks would lack")


def _wait_in_forks(requests: socket.socket) -> socket.socket | None:
    """Fork for each message; return in each fork the socket that came with it, and None in the end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, len(FORK), 1)
        if not message:
            return None
        connection = socket.socket(fileno=descriptors[0])
        if _fork():
            return connection
        connection.close()


def _fork() -> bool:
    """Fork a process for the supervisor to adopt. Return True in the fork, and False in the fork server.

    The process between the two ends at once, so the fork becomes a child of the supervisor, which learns how it ends.
    It outlives the fork server. If the kernel refuses to fork, nothing has happened.
    """
    reading, writing = os.pipe()
    try:
        between = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        return False
    if between == 0:
        try:
            child = os.fork()
        except OSError:
            os._exit(1)
        if child:
            os._exit(0)
        os.close(writing)
        os.read(reading, 1)  # It ends when the fork server has seen the one between end.
        os.close(reading)
        return True
    os.close(reading)
    os.waitpid(between, 0)
    os.close(writing)
    return False


def _become_requested(connection: socket.socket, supervisor: int) -> None:
    """Become the program that the supervisor requests, as if it had been started from the command line."""
    os.setsid()
    if os.getppid() != supervisor:
        os._exit(1)  # It has ended.
    connection.sendall(f"{os.getpid()}\n".encode())
    with connection.makefile("rb") as stream:
        request: dict[str, Any] = json.loads(stream.read() or b"null")
    if request is None:
        os._exit(1)  # It has given up.
    request_parent_death_signal(request["stop_signal"], supervisor)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.environ.clear()
    os.environ.update(request["environ"])
    set_command_line(request["argv"], request["environ"])
    sys.orig_argv[:] = request["argv"]
    sys.argv[1:] = request["argv"][request["argv"].index("soundmark") + 1 :]


if __name__ == "__main__":
    main()
