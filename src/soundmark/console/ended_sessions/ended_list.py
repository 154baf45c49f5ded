"""The ended sessions that one process knows."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import structlog

DIGEST_BYTES: Final = 16
# A session that was signed out from this console every second of a working day, and some more. About 7 MB in memory.
SESSIONS_MAX: Final = 50_000
# How many of a full list one moment replaces.
REPLACED_COUNT: Final = SESSIONS_MAX // 10

_log: Final = structlog.get_logger()


class EndedSession(NamedTuple):
    """The digest of a session, and the second since 1970 at which it would have ended anyway."""

    digest: bytes
    ends_at_s: float


# Where a record has this digest, all sessions that would have ended by then anyway have ended.
EVERY: Final = bytes(DIGEST_BYTES)


class EndedList:
    """Ended sessions, each until it would have ended anyway.

    When the list is full, one moment replaces the tenth of it that would end first. Every session that would end by
    that moment counts as ended, even if nobody ended it: those people sign in again. So the list is bounded, and never
    forgets a session.
    """

    def __init__(self) -> None:
        self._ends: Final[dict[bytes, float]] = {}
        self._every_until_s = 0.0
        self._latest: EndedSession | None = None

    @property
    def latest(self) -> EndedSession | None:
        """The session that would end last, of all that were ever in the list."""
        return self._latest

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, session: EndedSession, now_s: float) -> None:
        """Add an ended session, or what the digest EVERY stands for."""
        if session.digest == EVERY:
            self._end_every(session.ends_at_s)
        elif session.ends_at_s > max(now_s, self._every_until_s):
            self._ends[session.digest] = session.ends_at_s
            if self._latest is None or session.ends_at_s > self._latest.ends_at_s:
                self._latest = session
            if len(self._ends) > SESSIONS_MAX:
                self._make_room(now_s)

    def has(self, session: EndedSession) -> bool:
        """Return whether a session has ended, as far as this list knows."""
        return session.digest in self._ends or session.ends_at_s <= self._every_until_s

    def records(self, now_s: float) -> Iterator[EndedSession]:
        """Yield all that is worth keeping."""
        if self._every_until_s > now_s:
            yield EndedSession(EVERY, self._every_until_s)
        yield from (EndedSession(digest, ends_at_s) for digest, ends_at_s in self._ends.items() if ends_at_s > now_s)

    def _make_room(self, now_s: float) -> None:
        self._forget_until(now_s)
        if len(self._ends) > SESSIONS_MAX:
            self._end_every(sorted(self._ends.values())[REPLACED_COUNT])

    def _end_every(self, until_s: float) -> None:
        if until_s > self._every_until_s:
            self._every_until_s = until_s
            self._forget_until(until_s)
            _log.warning("ended_sessions_full", kept=len(self._ends))

    def _forget_until(self, moment_s: float) -> None:
        for digest in [digest for digest, ends_at_s in self._ends.items() if ends_at_s <= moment_s]:
            del self._ends[digest]
