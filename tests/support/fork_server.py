"""Forks a `soundmark` process for each connection: `python fork_server.py LISTENING MODULES`.

The server has one thread and has imported the modules, and does nothing else. A command runs in its own process, with
the arguments, environment, folder and streams that it is sent, as `python -m soundmark` would run it. It ends when the
other side hangs up.
"""

import atexit
import gc
import importlib
import os
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from command_protocol import receive_command, send_number


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
    body, streams = receive_command(connection)
    # The command holds the only end to write to, so the other one is readable when it has ended.
    ended, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        connection.close()
        os.close(ended)
        os._exit(_run(body, streams))
    os.close(held)
    for stream in streams:
        os.close(stream)
    send_number(connection, pid)
    hung_up = connection in select.select([ended, connection], [], [])[0]
    if hung_up:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not hung_up:
        send_number(connection, os.waitstatus_to_exitcode(status))
    return 0


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
