"""Sessions: who is signed in, kept sealed in the browser. Only that a session has ended is kept elsewhere."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from soundmark.console.ended_sessions.ended_list import DIGEST_BYTES, EndedSession
from soundmark.console.ended_sessions.ended_sessions import EndedSessions
from soundmark.console.sealed_cookies import CookieJar
from soundmark.kit.clock import Clock

_NAME: Final = "session"
# A request under way that refreshes its tokens may write its session once more, even if the browser has left that
# session meanwhile. So the browser remembers the sessions that it left, for as long as they could last. That also helps
# where processes cannot tell each other which sessions have ended.
_LEFT: Final = "left"
_LEFT_MAX: Final = 8
# A working day: after it a person signs in again, whatever the identity provider would still refresh.
LIFETIME: Final = timedelta(hours=12)

Kind: TypeAlias = Literal["operator", "oidc"]


@dataclass(frozen=True, slots=True)
class Session:
    """A person who is signed in. An operator's session holds no token: the console itself has it.

    `csrf_token` is in every form. `has_second_factor` says whether the login reached LoA 2.
    """

    kind: Kind
    subject: str
    email: str | None
    csrf_token: str = field(repr=False)
    started_at: datetime
    has_second_factor: bool = False
    access_token: str | None = field(default=None, repr=False)
    access_expires_at: datetime | None = None
    refresh_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions in the browsers' cookies, and those that have ended."""

    jar: CookieJar
    clock: Clock
    ended: EndedSessions

    async def read(self, request: Request) -> Session | None:
        """Return the session of a request; None without one, or if it was altered, has ended or lasted too long."""
        session = self.find(request)
        if session is None or self.clock.now() - session.started_at >= LIFETIME:
            return None
        if _digest(session).hex() in self._read_left(request) or await self.has_ended(session):
            return None
        return session

    def find(self, request: Request) -> Session | None:
        """Return the session that the browser sent, even if it has ended or lasted too long."""
        value = self.jar.read(_NAME, request.cookies)
        try:
            return None if value is None else msgspec.convert(value, Session)
        except msgspec.ValidationError:
            return None  # An earlier release wrote it.

    async def has_ended(self, session: Session) -> bool:
        """Return whether somebody signed out of a session, or replaced it by a new login."""
        return await self.ended.has(_ended(session))

    async def begin(self, request: Request, response: Response, session: Session) -> None:
        """Put a new session into the browser, and end the one that is there.

        Raises: sealed_cookies.CookieTooLarge.
        """
        self.renew(request, response, session)
        await self.end(request)
        self._leave(request, response)

    def renew(self, request: Request, response: Response, session: Session) -> None:
        """Put the session of the request into the browser with other tokens.

        Raises: sealed_cookies.CookieTooLarge.
        """
        self.jar.write(response, _NAME, session, replacing=request.cookies)

    async def end(self, request: Request) -> None:
        """End the session of a request for good: no copy of its cookie is accepted any longer."""
        if (session := self.find(request)) is not None:
            await self.ended.add(_ended(session))

    def remove(self, request: Request, response: Response) -> None:
        """Remove a session that has ended from the browser, which remembers that it left it."""
        self.clear(request, response)
        self._leave(request, response)

    def clear(self, request: Request, response: Response) -> None:
        """Remove the session from the browser."""
        self.jar.clear(response, _NAME, request.cookies)

    def _leave(self, request: Request, response: Response) -> None:
        if (session := self.find(request)) is not None:
            left = dict.fromkeys([*self._read_left(request), _digest(session).hex()])
            self.jar.write(response, _LEFT, [*left][-_LEFT_MAX:], max_age_s=int(LIFETIME.total_seconds()))

    def _read_left(self, request: Request) -> list[str]:
        try:
            return msgspec.convert(self.jar.read(_LEFT, request.cookies), list[str])
        except msgspec.ValidationError:
            return []


def _ended(session: Session) -> EndedSession:
    return EndedSession(_digest(session), (session.started_at + LIFETIME).timestamp())


def _digest(session: Session) -> bytes:
    """Return what names a session, however often its tokens are refreshed."""
    return hashlib.sha256(session.csrf_token.encode()).digest()[:DIGEST_BYTES]
