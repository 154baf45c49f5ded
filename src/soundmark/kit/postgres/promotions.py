"""The pause after a failover in which no revocation is acknowledged, because the old primary may still be read."""

import asyncio
from typing import Final

from soundmark.kit.clock import Clock
from soundmark.kit.postgres.database_server import FIRST_TIMELINE, DatabaseServer

# How long a process may answer from a server after a write there was sent that synchronous standbys then confirmed.
LEASE_S: Final = 5.0
_LOOK_EVERY_S: Final = 0.05


class Promotions:
    """When this process first saw each timeline, so that it can outlast the leases that were held on the one before.

    A process that starts after a promotion cannot know when that was, and counts from its own first sight.
    """

    def __init__(self, clock: Clock, *, lease_s: float = LEASE_S) -> None:
        self._clock: Final = clock
        self._lease_s: Final = lease_s
        self._seen_at_s: Final[dict[str, float]] = {}

    def see(self, server: DatabaseServer) -> None:
        """Note that the server takes writes on its timeline."""
        if server.timeline is not None:
            self._seen_at_s.setdefault(server.timeline, self._clock.monotonic_s())

    async def outlast_leases(self, server: DatabaseServer) -> None:
        """Wait until no process can hold a lease on an earlier primary.

        A command that revokes calls this between its commit on `server` and its response. It waits only in the first
        `LEASE_S` after this process first saw the timeline, and never in a cluster without a promotion.
        """
        assert server.timeline is not None, "a standby commits nothing"
        self.see(server)
        until_s = self._seen_at_s[server.timeline] + self._lease_s
        while server.timeline != FIRST_TIMELINE and self._clock.monotonic_s() < until_s:  # noqa: ASYNC110 - time passes
            await asyncio.sleep(_LOOK_EVERY_S)
