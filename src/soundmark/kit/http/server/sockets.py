"""Listening sockets that several processes share, so that the kernel spreads connections over them."""

import contextlib
import errno
import socket
import sys
from pathlib import Path
from typing import Final

_BACKLOG: Final = 1024
_RESERVED_BELOW: Final = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
_RESERVED_BELOW_DEFAULT: Final = 1024


class CannotListen(OSError):
    """This address cannot be listened on; the message is one line for the operator, with the address and the reason."""


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
    """Return a socket like `shared_socket`, after checking that nobody else has the port at the moment.

    SO_REUSEPORT alone would let two deployments of one user share a port silently.

    Raises: CannotListen.
    """
    with _new_socket(host, port) as alone:
        _bind(alone, host, port)
        port = alone.getsockname()[1]
    return shared_socket(host, port)


def claim_port(held: socket.socket) -> contextlib.AbstractContextManager[object]:
    """Claim the address of a bound socket against every other process that claims it, until the context ends.

    A bound socket that does not listen yet keeps nobody from binding its port too, because both set SO_REUSEADDR; the
    second would fail when it listens. A claim is a socket with a name in the kernel, which only one process can have,
    and which disappears with its process. Like a port, it counts within one network namespace. Systems without such
    names claim nothing.

    Raises: PortTaken.
    """
    if sys.platform != "linux":
        return contextlib.nullcontext()
    host, port = held.getsockname()[:2]
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0soundmark/{_format_address(host, port)}")
    except OSError as error:
        claim.close()
        raise _refusal(error, host, port) from error
    return claim


def require_unreserved(host: str, port: int, user: str) -> None:
    """Refuse a port on which `user`, who has no privileges, cannot listen.

    Raises: PortReserved.
    """
    if 0 < port < (below := _find_first_open_port()):
        raise PortReserved(
            f"cannot listen on {_format_address(host, port)}: ports below {below} are reserved for root, "
            f"and the serving process runs as the user {user}"
        )


def listen(sock: socket.socket) -> None:
    """Start accepting connections."""
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
    if not host:  # The kernel would take it for every address.
        raise CannotListen(f"cannot listen on port {port}: the host is empty; every address of the machine is 0.0.0.0")
    try:
        sock.bind((host, port))
    # A host name that is too long or malformed raises UnicodeError.
    except (OSError, UnicodeError) as error:
        raise _refusal(error, host, port) from error


def _refusal(error: OSError | UnicodeError, host: str, port: int) -> CannotListen:
    address = _format_address(host, port)
    if isinstance(error, UnicodeError | socket.gaierror):
        return CannotListen(f"cannot listen on {address}: the host name {host} does not resolve to an address")
    match error.errno:
        case errno.EADDRINUSE:
            return PortTaken(f"{address} is in use by another program")
        case errno.EACCES if port < (below := _find_first_open_port()):
            return PortReserved(f"cannot listen on {address}: ports below {below} are reserved for root")
        case errno.EADDRNOTAVAIL:
            return CannotListen(f"cannot listen on {address}: this machine does not have the address {host}")
        case _:
            return CannotListen(f"cannot listen on {address}: {error.strerror or error}")


def _format_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _find_first_open_port() -> int:
    """Return the first port on which every user may listen."""
    try:
        return int(_RESERVED_BELOW.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return _RESERVED_BELOW_DEFAULT
