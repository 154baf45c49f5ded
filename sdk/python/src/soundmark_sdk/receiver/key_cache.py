"""Cache the published keys for as long as the server allows, and fetch them again when an unknown key id appears."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from soundmark_sdk.clock import Clock
from soundmark_sdk.failures import ReceiverFailure
from soundmark_sdk.keys import KeySet

# Core publishes with `max-age=60` and rotates keys on that basis. No answer can make us keep a key for longer.
AGE_MAX_S: Final = 60.0
# Unknown key ids cost the server at most one request in this time, however many answers name them.
UNKNOWN_KEY_INTERVAL_S: Final = 10.0

# Returns the keys, and the max-age of their response if it had one.
FetchKeys: TypeAlias = Callable[[], Awaitable[tuple[KeySet, float | None]]]


class KeyCache:
    """The keys of one service. Concurrent callers share one fetch, and its failure as well.

    When a fetch fails, the old keys are not used instead: a key that was withdrawn must stop verifying.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._keys: KeySet | None = None
        self._fresh_until_s = 0.0
        self._unknown_allowed_from_s: float | None = None
        # The number of fetches that have ended, and the failure of the last one.
        self._fetch_count = 0
        self._failure: ReceiverFailure | None = None

    async def get_fresh(self, fetch: FetchKeys) -> KeySet:
        """Return fresh keys, which are fetched now if necessary.

        Raises: whatever `fetch` raises, also when another caller made the fetch that this one waited for.
        """
        fetch_count = self._fetch_count
        async with self._lock:
            if self._keys is not None and self._clock.monotonic_s() < self._fresh_until_s:
                return self._keys
            # If every waiting caller tried again in turn, the last would wait for the timeouts of all.
            if self._failure is not None and self._fetch_count != fetch_count:
                failed = self._failure
                raise ReceiverFailure(
                    failed.reason,
                    failed.explanation,
                    retry_after_s=failed.retry_after_s,
                    is_unreachable=failed.is_unreachable,
                )
            return await self._refresh(fetch)

    async def get_newer(self, known: KeySet, fetch: FetchKeys) -> KeySet | None:
        """Return keys that are newer than `known`, or None when it is too early to fetch again.

        Raises: whatever `fetch` raises.
        """
        async with self._lock:
            if self._keys is not None and self._keys is not known:
                return self._keys
            now_s = self._clock.monotonic_s()
            if self._unknown_allowed_from_s is not None and now_s < self._unknown_allowed_from_s:
                return None
            # Set before the fetch, so that a fetch that fails counts as well.
            self._unknown_allowed_from_s = now_s + UNKNOWN_KEY_INTERVAL_S
            return await self._refresh(fetch)

    async def _refresh(self, fetch: FetchKeys) -> KeySet:
        started_at_s = self._clock.monotonic_s()
        try:
            keys, max_age_s = await fetch()
        except ReceiverFailure as failure:
            self._fetch_count, self._failure = self._fetch_count + 1, failure
            raise
        self._fetch_count, self._failure = self._fetch_count + 1, None
        self._keys = keys
        # The age counts from the request, because the answer may have been on its way for a while.
        self._fresh_until_s = started_at_s + min(AGE_MAX_S, AGE_MAX_S if max_age_s is None else max_age_s)
        return keys
