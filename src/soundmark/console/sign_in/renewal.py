"""Keeping a person signed in: tokens are renewed before they expire, and when Core no longer takes them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from typing import Final, TypeAlias

import httpx2

from soundmark.console.session import Session, Sessions
from soundmark.console.sign_in.identity_provider import GrantRefused, IdentityProvider, ProviderUnavailable, Tokens
from soundmark.console.sign_in.refreshing import TokenRefresher
from soundmark.kit.clock import Clock

# Longer than a page takes, shorter than any access token lives.
_BEFORE_EXPIRY: Final = timedelta(seconds=30)
# A request with a very old cookie follows the refreshes that this process remembers, one after the other.
_STEPS_MAX: Final = 20

Renew: TypeAlias = Callable[[str], Awaitable[str | None]]


class SessionEnded(Exception):
    """The session cannot be renewed, or somebody signed out of it meanwhile: the person has to sign in again."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """Renews the tokens of sessions, and revokes them."""

    refresher: TokenRefresher
    provider: IdentityProvider
    sessions: Sessions
    clock: Clock

    async def prepare(self, session: Session) -> Session:
        """Return a session whose access token is valid long enough for a page.

        A refresh that fails changes nothing while the access token is valid: another process may have refreshed at the
        same moment, and the browser's next request brings what that process got.

        Raises: SessionEnded; ProviderUnavailable, if the session could go on once the provider answers.
        """
        if session.access_expires_at is None:
            return session
        margin = _BEFORE_EXPIRY
        for _ in range(_STEPS_MAX):
            if self._time_left(session) > margin:
                return session
            try:
                session = await self._refresh(session)
            except (GrantRefused, ProviderUnavailable) as failed:
                if self._time_left(session) > timedelta(0):
                    return session
                if isinstance(failed, ProviderUnavailable):
                    raise
                raise SessionEnded from None
            margin = timedelta(0)  # New tokens are good as long as they are valid, however short that is.
        return session

    async def replace(self, session: Session) -> Session | None:
        """Return the session with new tokens, although the old ones look valid; None if there are none."""
        try:
            return await self._refresh(session)
        except (GrantRefused, ProviderUnavailable, SessionEnded):
            return None

    async def revoke(self, session: Session) -> None:
        """Make the session's refresh token worthless at the provider, and what replaced it."""
        if session.refresh_token is not None:
            await self.provider.revoke(self.refresher.find_newest(session.refresh_token))

    async def _refresh(self, session: Session) -> Session:
        """Raises: GrantRefused; ProviderUnavailable; SessionEnded."""
        if session.refresh_token is None:
            raise GrantRefused
        renewed = use_tokens(session, await self.refresher.refresh(session.refresh_token))
        # Whoever signed out while the provider was asked could only revoke what was there before.
        if await self.sessions.has_ended(session):
            await self.revoke(renewed)
            raise SessionEnded
        return renewed

    def _time_left(self, session: Session) -> timedelta:
        assert session.access_expires_at is not None, "a session of an identity provider has tokens"
        return session.access_expires_at - self.clock.now()


def use_tokens(session: Session, tokens: Tokens) -> Session:
    """Return the session with other tokens."""
    return replace(
        session,
        access_token=tokens.access_token,
        access_expires_at=tokens.expires_at,
        refresh_token=tokens.refresh_token,
    )


class RenewingTransport(httpx2.AsyncBaseTransport):
    """The connections to Core for one visit: a request that Core answers with 401 is repeated once with a new token.

    Core refuses a credential before it does anything, so the repetition cannot do something twice. Calls that a page
    makes at the same time are refused together, and share one refresh: `refreshing`.
    """

    def __init__(self, transport: httpx2.AsyncBaseTransport, renew: Renew) -> None:
        self._transport: Final = transport
        self._renew: Final = renew

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._transport.handle_async_request(request)
        scheme, _, refused = request.headers.get("authorization", "").partition(" ")
        if response.status_code != HTTPStatus.UNAUTHORIZED or not refused:
            return response
        token = await self._renew(refused)
        if token is None:
            return response
        await response.aclose()
        request.headers["authorization"] = f"{scheme} {token}"
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Leave the connections open: they are shared."""
