"""Look-ups of names whose servers may hang: each in a thread of its own, with a deadline, one at a time for a name."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any, Final, TypeAlias

from soundmark.kit.http.outbound.public_address import Address

LOOKUP_S: Final = 5.0
# A look-up cannot be cancelled, and the system gives up on it after half a minute or so.
_THREADS_MAX: Final = 256

GetAddresses: TypeAlias = Callable[[bytes], Sequence[str]]


def get_addresses(host: bytes) -> list[str]:
    """Return the addresses of a name, as the operating system finds them.

    Raises: OSError.
    """
    found: Any = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [socket_address[0] for *_, socket_address in found]


class NameNotFound(Exception):
    """A name has no address, or its server did not answer in time."""


class Resolver:
    """Finds the addresses of names. A server that hangs occupies one thread for each of its names, and no one waits."""

    def __init__(self, get: GetAddresses = get_addresses) -> None:
        self._get: Final = get
        self._running: Final[dict[str, asyncio.Future[tuple[Address, ...]]]] = {}

    async def find_addresses(self, host: str) -> tuple[Address, ...]:
        """Return the addresses of an ASCII name, best first, at least one.

        Raises: NameNotFound.
        """
        lookup = self._running.get(host) or self._begin(host)
        try:
            async with asyncio.timeout(LOOKUP_S):
                addresses = await asyncio.shield(lookup)
        except (TimeoutError, OSError, ValueError):
            raise NameNotFound from None
        if not addresses:
            raise NameNotFound
        return addresses

    def _begin(self, host: str) -> "asyncio.Future[tuple[Address, ...]]":
        if len(self._running) >= _THREADS_MAX:
            raise NameNotFound
        loop = asyncio.get_running_loop()
        lookup = self._running[host] = loop.create_future()
        lookup.add_done_callback(lambda _: lookup.exception())  # Every caller may have given up.

        def look_up() -> None:
            result: tuple[Address, ...] | Exception
            try:
                result = tuple(dict.fromkeys(ip_address(text) for text in self._get(host.encode("ascii"))))
            except Exception as error:  # noqa: BLE001 - it belongs to those who wait
                result = error
            with contextlib.suppress(RuntimeError):  # The loop was closed in the meantime.
                loop.call_soon_threadsafe(self._end, host, result)

        # A daemon, so that the process need not wait for it when it ends.
        threading.Thread(target=look_up, name="lookup", daemon=True).start()
        return lookup

    def _end(self, host: str, result: "tuple[Address, ...] | Exception") -> None:
        lookup = self._running.pop(host)
        if isinstance(result, Exception):
            lookup.set_exception(result)
        else:
            lookup.set_result(result)
