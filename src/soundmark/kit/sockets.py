"""Listening sockets that several processes share, so that the kernel spreads connections over them."""

import errno
import socket
from typing import Final

_BACKLOG: Final = 1024
_RESERVED_BELOW: Final = 1024  # IPPORT_RESERVED; a system may say otherwise, and then refuses none of these.


class CannotListen(OSError):  # noqa: N818 - named for what was found
    """This address cannot be listened on; the message is a line for the operator that names it and says why."""


class PortTaken(CannotListen):
    """Another program listens on this address."""


class PortReserved(CannotListen):
    """The port is one of those that the system reserves for root."""


def shared_socket(host: str, port: int) -> socket.socket:
    """Return a bound TCP socket with SO_REUSEPORT that does not listen yet; port 0 takes a free one.

    A socket that is bound and never listens gets no connection, and keeps the port for the processes that will.

    Raises: CannotListen.
    """
    sock = _new_socket(host, port)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        _bind(sock, host, port)
    except CannotListen:
        sock.close()
        raise
    return sock


def reserve_port(host: str, port: int) -> socket.socket:
    """Return what `shared_socket` does, after making sure that nobody else had the port at that moment.

    SO_REUSEPORT alone would let two deployments of one user share a port without a word.

    Raises: CannotListen.
    """
    with _new_socket(host, port) as alone:
        _bind(alone, host, port)
        port = alone.getsockname()[1]
    return shared_socket(host, port)


def listen(sock: socket.socket) -> None:
    """Start to take connections."""
    sock.listen(_BACKLOG)
    sock.setblocking(False)


def _new_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:  # A kernel without IPv6.
        raise _refusal(error, host, port) from error
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return sock


def _bind(sock: socket.socket, host: str, port: int) -> None:
    try:
        sock.bind((host, port))
    # A host name that is too long, or holds what no host name may, is a UnicodeError.
    except (OSError, UnicodeError) as error:
        raise _refusal(error, host, port) from error


def _refusal(error: OSError | UnicodeError, host: str, port: int) -> CannotListen:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if isinstance(error, UnicodeError | socket.gaierror):
        return CannotListen(f"{address} cannot be listened on: the host name {host} does not resolve to an address")
    match error.errno:
        case errno.EADDRINUSE:
            return PortTaken(f"{address} is in use by another program")
        case errno.EACCES if port < _RESERVED_BELOW:
            return PortReserved(f"{address} cannot be listened on: ports below {_RESERVED_BELOW} are reserved for root")
        case errno.EADDRNOTAVAIL:
            return CannotListen(f"{address} cannot be listened on: this machine does not have the address {host}")
        case _:
            return CannotListen(f"{address} cannot be listened on: {error.strerror or error}")
