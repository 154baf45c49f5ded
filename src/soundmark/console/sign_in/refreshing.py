"""Refreshing tokens, once for all requests that hold the same refresh token."""

import asyncio
import functools
import hashlib
from dataclasses import dataclass
from typing import Final

from soundmark.console.sign_in.identity_provider import IdentityProvider, ProviderUnavailable, Tokens
from soundmark.kit.clock import Clock
from soundmark.kit.tasks import cancel_and_wait

# Requests that were sent before the browser got the new cookie still bring the old refresh token. Many providers revoke
# everything when they see one twice.
_REMEMBERED_S: Final = 600.0
_REMEMBERED_MAX: Final = 2_000  # Of some 4 KiB each.


@dataclass(frozen=True, slots=True)
class _Refresh:
    task: "asyncio.Task[Tokens]"
    began_at_s: float


class TokenRefresher:
    """Asks the provider once for each refresh token, and remembers for a while what replaces it.

    Processes share nothing, so two of them may use one refresh token at the same time. Then the provider refuses one
    of them; `sign_in.renewal` says how that person goes on.
    """

    def __init__(self, provider: IdentityProvider, clock: Clock) -> None:
        self._provider: Final = provider
        self._clock: Final = clock
        self._refreshes: Final[dict[bytes, _Refresh]] = {}

    async def refresh(self, refresh_token: str) -> Tokens:
        """Return the tokens that replace those with this refresh token.

        Raises: ProviderUnavailable; GrantRefused.
        """
        key = _digest(refresh_token)
        self._forget_old()
        if key not in self._refreshes:
            task = asyncio.create_task(self._provider.refresh(refresh_token), name="token refresh")
            task.add_done_callback(functools.partial(self._settle, key))
            self._refreshes[key] = _Refresh(task, self._clock.monotonic_s())
        # Shielded, so that a person who closes the page does not cancel a refresh that may already have taken place.
        return await asyncio.shield(self._refreshes[key].task)

    def find_newest(self, refresh_token: str) -> str:
        """Return the refresh token that has replaced this one, as far as this process knows."""
        refreshed: str | None = refresh_token
        while refreshed is not None:
            refresh_token = refreshed
            refreshed = self._find_next(refresh_token)
        return refresh_token

    async def aclose(self) -> None:
        """Stop what is in progress."""
        for refresh in self._refreshes.values():
            if not refresh.task.done():
                await cancel_and_wait(refresh.task)

    def _forget_old(self) -> None:
        now_s = self._clock.monotonic_s()
        for key, refresh in list(self._refreshes.items()):
            if now_s - refresh.began_at_s >= _REMEMBERED_S:
                del self._refreshes[key]
        done = [key for key, refresh in self._refreshes.items() if refresh.task.done()]
        for key in done[: max(0, len(self._refreshes) - _REMEMBERED_MAX)]:
            del self._refreshes[key]

    def _find_next(self, refresh_token: str) -> str | None:
        refresh = self._refreshes.get(_digest(refresh_token))
        if refresh is None or not refresh.task.done() or refresh.task.cancelled() or refresh.task.exception():
            return None
        return refresh.task.result().refresh_token

    def _settle(self, key: bytes, task: "asyncio.Task[Tokens]") -> None:
        """Forget a refresh that has ended, if the provider may be asked again with the same token."""
        # Reading the failure also keeps asyncio from reporting it if every waiting request was cancelled.
        if task.cancelled() or isinstance(task.exception(), ProviderUnavailable) or _keeps_token(key, task):
            self._refreshes.pop(key, None)


def _keeps_token(key: bytes, task: "asyncio.Task[Tokens]") -> bool:
    """Return whether a refresh left its refresh token valid, as many providers do."""
    refreshed = None if task.exception() is not None else task.result().refresh_token
    return refreshed is not None and _digest(refreshed) == key


def _digest(refresh_token: str) -> bytes:
    return hashlib.sha256(refresh_token.encode()).digest()
