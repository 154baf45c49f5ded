"""Waiting until the started processes are ready."""

import asyncio
import http.client
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from soundmark.kit.clock import Clock
from soundmark.supervision.supervisor import Supervisor

READY_TIMEOUT_S: Final = 60
ENDS_MAX: Final = 5  # A process that ended this often before it was ready will not become ready.

_POLL_S: Final = 0.03
_PROBE_TIMEOUT_S: Final = 5

Probe = Callable[[], bool]


class NotReady(Exception):
    """A process did not become ready; the message is one line for the user, and names it."""


async def until_ready(supervisor: Supervisor, clock: Clock, probes: Mapping[str, Probe]) -> None:
    """Wait until the probe of every named process has passed. Probes block, so they run in threads.

    Raises: NotReady, naming the first that ended `ENDS_MAX` times or was not ready in `READY_TIMEOUT_S` seconds.
    """
    deadline_s = clock.monotonic_s() + READY_TIMEOUT_S

    async def wait(name: str, probe: Probe) -> None:
        while not await asyncio.to_thread(probe):
            if supervisor.ends_count(name) >= ENDS_MAX:
                raise NotReady(f"{name} keeps exiting ({supervisor.last_end(name)})")
            if clock.monotonic_s() >= deadline_s:
                raise NotReady(f"{name} was not ready within {READY_TIMEOUT_S} seconds")
            await asyncio.sleep(_POLL_S)

    waits: list[Awaitable[None]] = [wait(name, probe) for name, probe in probes.items()]
    await asyncio.gather(*waits)


def readyz_probe(address: str) -> Probe:
    """Return a probe that asks the component at `address` whether it is ready; it never uses a proxy."""
    return _probe(address, "/readyz")


def healthz_probe(address: str) -> Probe:
    """Return a probe that asks the component at `address` whether it runs; it never uses a proxy."""
    return _probe(address, "/healthz")


def _probe(address: str, path: str) -> Probe:
    parts = urlsplit(address)

    def probe() -> bool:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PROBE_TIMEOUT_S)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return probe
