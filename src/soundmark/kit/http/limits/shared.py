"""Rate limits that several processes and machines count together, in Redis or Valkey."""

import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits.local import LimitState, LocalRateLimit
from soundmark.kit.http.limits.shared_server import ServerAway, SharedServer

if TYPE_CHECKING:
    from redis.asyncio import Redis


class SharedRateLimit:
    """A counter in Redis or Valkey, for all processes and machines that use the same server.

    Each limit has its own `key_prefix` there. While that server does not answer, this process counts alone, because an
    outage must neither refuse everybody nor lift the limit.
    """

    def __init__(
        self, url: Secret, quota: int, window_s: int, *, key_prefix: bytes, alone: LocalRateLimit, clock: Clock
    ) -> None:
        self._quota: Final = quota
        self._window_ms: Final = window_s * 1000
        self._key_prefix: Final = key_prefix
        self._alone: Final = alone
        self._server: Final = SharedServer(url, clock, outage="shared_rate_limit_unavailable")

    async def hit(self, subject: bytes) -> LimitState:
        return await self._ask(subject, self._count_together, self._alone.count)

    async def look(self, subject: bytes) -> LimitState:
        return await self._ask(subject, self._look_together, self._alone.judge)

    async def _ask(
        self,
        subject: bytes,
        together: Callable[["Redis", bytes], Awaitable[LimitState]],
        alone: Callable[[bytes], LimitState],
    ) -> LimitState:
        """Count at the server, or in this process alone while the server is unavailable."""
        key = self._key_prefix + subject.hex().encode()
        try:
            return await self._server.ask(lambda client: together(client, key))
        except ServerAway:
            return alone(subject)

    async def _count_together(self, client: "Redis", key: bytes) -> LimitState:
        async with client.pipeline(transaction=True) as pipeline:
            # The first request of a subject opens its window. The three commands are one transaction.
            pipeline.set(key, 0, px=self._window_ms, nx=True)
            pipeline.incr(key)
            pipeline.pttl(key)
            _, used, left_ms = await pipeline.execute()
            if left_ms < 0:
                # Before Redis 7, a window can end within the transaction, and the new count would never expire.
                await client.pexpire(key, self._window_ms)
                left_ms = self._window_ms
        return self._verdict(used, left_ms)

    async def _look_together(self, client: "Redis", key: bytes) -> LimitState:
        async with client.pipeline(transaction=True) as pipeline:
            pipeline.get(key)
            pipeline.pttl(key)
            used, left_ms = await pipeline.execute()
        return self._verdict(int(used or 0), left_ms if used else self._window_ms)._replace(is_first_refused=False)

    def _verdict(self, used: int, left_ms: int) -> LimitState:
        left = self._quota - used
        return LimitState(left >= 0, max(0, left), max(1, math.ceil(left_ms / 1000)), left == -1)

    async def aclose(self) -> None:
        await self._server.aclose()
