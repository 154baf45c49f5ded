"""The published keys, kept for as long as the server says and fetched again when an unknown key appears."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from soundmark_sdk.clock import Clock
from soundmark_sdk.failures import ReceiverFailure
from soundmark_sdk.keys import KeySet

# Core publishes with `max-age=60` and rotates on the strength of it; nobody can make us keep a key longer.
AGE_MAX_S: Final = 60.0
# Unknown key ids cost the server at most one request in this time, however many answers name them.
UNKNOWN_KEY_INTERVAL_S: Final = 10.0

# Returns the keys and the max-age that came with them, if any.
FetchKeys: TypeAlias = Callable[[], Awaitable[tuple[KeySet, float | None]]]


class KeyCache:
    """One service's keys. Concurrent callers share one fetch, and its failure as well.

    A stale set is never used when a fetch fails: a key that was withdrawn must stop verifying.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._keys: KeySet | None = None
        self._fresh_until_s = 0.0
        self._unknown_allowed_from_s: float | None = None
        # How many fetches have ended, and how the last of them failed, if it did.
        self._ended_count = 0
        self._failure: ReceiverFailure | None = None

    async def current(self, fetch: FetchKeys) -> KeySet:
        """Return keys that are fresh, fetched now if need be.

        Raises: what `fetch` raises, also when it was another caller's that this one waited for.
        """
        ended_count = self._ended_count
        async with self._lock:
            if self._keys is not None and self._clock.monotonic_s() < self._fresh_until_s:
                return self._keys
            # If each of many tried after the one before it had failed, the last would wait for all their deadlines.
            if self._failure is not None and self._ended_count != ended_count:
                failed = self._failure
                raise ReceiverFailure(failed.reason, failed.explanation, retry_after_s=failed.retry_after_s)
            return await self._refresh(fetch)

    async def newer_than(self, judged: KeySet, fetch: FetchKeys) -> KeySet | None:
        """Return keys that are newer than those which lacked a key, or None when it is too early to ask again.

        Raises: what `fetch` raises.
        """
        async with self._lock:
            if self._keys is not None and self._keys is not judged:
                return self._keys
            now_s = self._clock.monotonic_s()
            if self._unknown_allowed_from_s is not None and now_s < self._unknown_allowed_from_s:
                return None
            # Set before the fetch, so that a failing one counts as well.
            self._unknown_allowed_from_s = now_s + UNKNOWN_KEY_INTERVAL_S
            return await self._refresh(fetch)

    async def _refresh(self, fetch: FetchKeys) -> KeySet:
        asked_at_s = self._clock.monotonic_s()
        try:
            keys, max_age_s = await fetch()
        except ReceiverFailure as failure:
            self._ended_count, self._failure = self._ended_count + 1, failure
            raise
        self._ended_count, self._failure = self._ended_count + 1, None
        self._keys = keys
        # Counted from the question: the answer was already on its way while we waited.
        self._fresh_until_s = asked_at_s + min(AGE_MAX_S, AGE_MAX_S if max_age_s is None else max_age_s)
        return keys
