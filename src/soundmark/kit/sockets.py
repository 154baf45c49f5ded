"""Listening sockets that several processes share, so that the kernel spreads connections over them."""

import socket
from typing import Final

_BACKLOG: Final = 1024


class PortTaken(OSError):  # noqa: N818 - named for what was found
    """Somebody else listens on this address."""


def shared_socket(host: str, port: int) -> socket.socket:
    """A bound TCP socket with SO_REUSEPORT, not listening yet; port 0 takes a free one.

    A socket that is bound and never listens gets no connection, and keeps the port for the processes that will.

    Raises: PortTaken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise PortTaken(f"{host}:{port} cannot be listened on: {error.strerror}") from error
    return sock


def reserve_port(host: str, port: int) -> socket.socket:
    """Like `shared_socket`, and certain that nobody else had the port at that moment.

    SO_REUSEPORT alone would let two deployments of one user share a port without a word.

    Raises: PortTaken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as alone:
        alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            alone.bind((host, port))
        except OSError as error:
            raise PortTaken(f"{host}:{port} is in use by another program") from error
        port = alone.getsockname()[1]
    return shared_socket(host, port)


def listen(sock: socket.socket) -> None:
    """Start to take connections."""
    sock.listen(_BACKLOG)
    sock.setblocking(False)
