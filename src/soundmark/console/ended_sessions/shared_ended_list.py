"""The ended sessions in Redis or Valkey, for the console's processes on all machines."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from soundmark.console.ended_sessions.ended_list import EVERY, REPLACED_COUNT, SESSIONS_MAX, EndedList, EndedSession
from soundmark.kit.clock import Clock
from soundmark.kit.http.limits.shared_server import ServerAway, SharedServer

if TYPE_CHECKING:
    from redis.asyncio import Redis

# One sorted set: a member is the digest of a session in hexadecimal, its score is when the session would end anyway.
_KEY: Final = "soundmark:console:ended-sessions"
# The clocks of two machines may differ: a session must not be forgotten here while another machine still accepts it.
_CLOCK_DIFFERENCE_S: Final = 60.0
# No session lasts longer. A set that nobody adds to ends by itself.
_KEY_LIFETIME_S: Final = 13 * 3600
_BATCH: Final = 500

T = TypeVar("T")


class SharedEndedList:
    """The list at a server that may be away, restart, or lose its content.

    `known` is what this process knows. After an outage all of it is put there, by each process. The same happens if the
    server does not know the latest of it, because then the server has lost its content.
    """

    def __init__(self, server: SharedServer, known: EndedList, clock: Clock) -> None:
        self._server: Final = server
        self._known: Final = known
        self._clock: Final = clock
        self._is_complete = False  # Whether the server has all that this process knows, as far as it can tell.
        self._failures_count = 0

    @property
    def is_complete(self) -> bool:
        """Whether the server has everything that this process knows, as far as it can tell."""
        return self._is_complete

    async def add(self, session: EndedSession) -> None:
        """Put a session there that `known` has; if the server is away, the list is not complete."""
        with contextlib.suppress(ServerAway):
            await (self._put([session]) if self._is_complete else self._put_all())

    async def find(self, session: EndedSession) -> list[EndedSession]:
        """Return what the server knows about a session: that it ended, and until when all sessions ended.

        Nothing if the server is away.
        """
        with contextlib.suppress(ServerAway):
            if not self._is_complete:
                await self._put_all()
            return await self._look(session)
        return []

    async def complete(self) -> None:
        """Put everything there that this process knows, unless the server is away."""
        with contextlib.suppress(ServerAway):
            await self._put_all()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._server.aclose()

    async def _look(self, session: EndedSession) -> list[EndedSession]:
        latest = self._known.latest
        names = dict.fromkeys([session.digest, EVERY, *([] if latest is None else [latest.digest])])
        scores = await self._ask(lambda client: client.zmscore(_KEY, [name.hex() for name in names]))
        found = {name: score for name, score in zip(names, scores, strict=True) if score is not None}
        kept_from_s = max(found.get(EVERY, 0.0), self._clock.unix_s())
        if latest is not None and latest.digest not in found and latest.ends_at_s > kept_from_s:
            await self._put_all()
        return [EndedSession(name, ends_at_s) for name, ends_at_s in found.items()]

    async def _put_all(self) -> None:
        failures_count = self._failures_count
        records = list(self._known.records(self._clock.unix_s()))
        for start in range(0, len(records), _BATCH):
            await self._put(records[start : start + _BATCH])
        # What was added meanwhile, in vain, is not among them.
        self._is_complete = failures_count == self._failures_count

    async def _put(self, sessions: list[EndedSession]) -> None:
        count = await self._ask(lambda client: self._add_together(client, sessions))
        if count > SESSIONS_MAX:
            await self._ask(_make_room)

    async def _add_together(self, client: "Redis", sessions: list[EndedSession]) -> int:
        forgotten_before_s = self._clock.unix_s() - _CLOCK_DIFFERENCE_S
        async with client.pipeline(transaction=True) as pipeline:
            pipeline.zadd(_KEY, {session.digest.hex(): session.ends_at_s for session in sessions}, gt=True)
            pipeline.zremrangebyscore(_KEY, "-inf", f"({forgotten_before_s}")
            pipeline.expire(_KEY, _KEY_LIFETIME_S)
            pipeline.zcard(_KEY)
            answers = await pipeline.execute()
        return int(answers[-1])

    async def _ask(self, call: Callable[["Redis"], Awaitable[T]]) -> T:
        try:
            return await self._server.ask(call)
        except ServerAway:
            self._is_complete = False
            self._failures_count += 1
            raise


async def _make_room(client: "Redis") -> None:
    """Let one moment replace the tenth of a full list that would end first, as EndedList does."""
    # None if the server has lost its content meanwhile.
    found = await client.zrange(_KEY, REPLACED_COUNT, REPLACED_COUNT, withscores=True)
    async with client.pipeline(transaction=True) as pipeline:
        for _, until_s in found:
            pipeline.zadd(_KEY, {EVERY.hex(): until_s}, gt=True)
            pipeline.zremrangebyscore(_KEY, "-inf", f"({until_s}")
        await pipeline.execute()
