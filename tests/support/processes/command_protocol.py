"""What a command server is sent: a line of JSON with three open files, whereupon it answers two numbers.

The numbers are the process id of the command and, at its end, its exit status, negative if a signal ended it.
"""

import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence

_NUMBER = struct.Struct("!i")
_STREAMS = 3


def send_command(
    connection: socket.socket,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    streams: Sequence[int],
    script: str | None = None,
) -> None:
    """Ask for `soundmark` or a Python script, in the current folder, with these standard streams."""
    assert len(streams) == _STREAMS, "input, output and errors"
    body = {"arguments": list(arguments), "environ": dict(environ), "cwd": os.getcwd(), "script": script}  # noqa: PTH109 - pathlib would take longer to import than the rest
    line = json.dumps(body).encode() + b"\n"
    sent = socket.send_fds(connection, [line], list(streams))
    connection.sendall(line[sent:])


def receive_command(connection: socket.socket) -> tuple[dict[str, object], list[int]]:
    """Return what `send_command` sent, and the streams.

    Raises: EOFError if the other side hangs up first.
    """
    line, streams, _, _ = socket.recv_fds(connection, 64 * 1024, _STREAMS)
    while not line.endswith(b"\n"):
        more = connection.recv(64 * 1024)
        if not more:
            raise EOFError
        line += more
    return json.loads(line), streams


def send_number(connection: socket.socket, number: int) -> None:
    """Send a process id or an exit status."""
    connection.sendall(_NUMBER.pack(number))


def receive_number(connection: socket.socket) -> int:
    """Return what `send_number` sent."""
    (number,) = _NUMBER.unpack(connection.recv(_NUMBER.size, socket.MSG_WAITALL))
    assert isinstance(number, int), "the format says so"
    return number
