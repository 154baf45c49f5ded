"""A Redis or Valkey server that processes share, and can do without for a while."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.secret import Secret

if TYPE_CHECKING:
    from redis.asyncio import Redis

_TIMEOUT_S: Final = 0.25
_ALONE_S: Final = 1.0
_log: Final = structlog.get_logger()

T = TypeVar("T")


class ServerAway(Exception):
    """The shared server does not answer, or did not a moment ago."""


class SharedServer:
    """The connections of one process to a Redis or Valkey server.

    While the server does not answer, one call a second tries it again, and the others do not wait. `outage` is the
    event in the log when it begins.
    """

    def __init__(self, url: Secret, clock: Clock, *, outage: str) -> None:
        self._clock: Final = clock
        self._outage: Final = outage
        self._is_away = False
        self._try_again_at_s = 0.0
        # The client takes 65 ms to import, and few deployments use it.
        redis = importlib.import_module("redis.asyncio")
        # An answer of another kind than the commands have is no better than none.
        self._failures: Final = (redis.RedisError, OSError, TimeoutError, TypeError, ValueError)
        self._client: Final[Redis] = redis.Redis.from_url(
            url.reveal(), socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
        )

    async def ask(self, call: Callable[["Redis"], Awaitable[T]]) -> T:
        """Return what `call` gets from the server, within a quarter of a second.

        Raises: ServerAway.
        """
        was_away = self._is_away
        if was_away:
            now_s = self._clock.monotonic_s()
            if now_s < self._try_again_at_s:
                raise ServerAway
            self._try_again_at_s = now_s + _ALONE_S
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                answer = await call(self._client)
        except self._failures as error:
            # Of all calls that waited in vain, only the first one logs it.
            if was_away or not self._is_away:
                _log.warning(self._outage, error=type(error).__name__)
                self._is_away = True
                self._try_again_at_s = self._clock.monotonic_s() + _ALONE_S
            raise ServerAway from None
        self._is_away = False
        return answer

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
