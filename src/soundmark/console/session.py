"""Sessions: who is signed in, kept sealed in the browser and nowhere else."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from soundmark.console.sealed_cookies import CookieJar
from soundmark.kit.clock import Clock

_NAME: Final = "session"
# A request under way that refreshes its tokens writes its session once more, even if the browser has left that session
# meanwhile. So the browser remembers the sessions that it left, for as long as they could last.
_LEFT: Final = "left"
_LEFT_MAX: Final = 8
_DIGEST_CHARS: Final = 32
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
    """The sessions in the browsers' cookies."""

    jar: CookieJar
    clock: Clock

    def read(self, request: Request) -> Session | None:
        """Return the session of a request; None without one, or if it was altered, left or has lasted too long."""
        session = self._open(request)
        if session is None or self.clock.now() - session.started_at >= LIFETIME:
            return None
        return None if _digest(session) in self._read_left(request) else session

    def find_subject(self, request: Request) -> str | None:
        """Return the person whose session it is, even if it has lasted too long, or None if that is unknown."""
        session = self._open(request)
        return None if session is None else session.subject

    def begin(self, request: Request, response: Response, session: Session) -> None:
        """Put a new session into the browser, which leaves the one that is there.

        Raises: sealed_cookies.CookieTooLarge.
        """
        self.renew(request, response, session)
        self._leave(request, response)

    def renew(self, request: Request, response: Response, session: Session) -> None:
        """Put the session of the request into the browser with other tokens.

        Raises: sealed_cookies.CookieTooLarge.
        """
        self.jar.write(response, _NAME, session, replacing=request.cookies)

    def end(self, request: Request, response: Response) -> None:
        """Remove the session from the browser for good."""
        self.clear(request, response)
        self._leave(request, response)

    def clear(self, request: Request, response: Response) -> None:
        """Remove the session from the browser."""
        self.jar.clear(response, _NAME, request.cookies)

    def _leave(self, request: Request, response: Response) -> None:
        if (session := self._open(request)) is not None:
            left = dict.fromkeys([*self._read_left(request), _digest(session)])
            self.jar.write(response, _LEFT, [*left][-_LEFT_MAX:], max_age_s=int(LIFETIME.total_seconds()))

    def _read_left(self, request: Request) -> list[str]:
        try:
            return msgspec.convert(self.jar.read(_LEFT, request.cookies), list[str])
        except msgspec.ValidationError:
            return []

    def _open(self, request: Request) -> Session | None:
        value = self.jar.read(_NAME, request.cookies)
        try:
            return None if value is None else msgspec.convert(value, Session)
        except msgspec.ValidationError:
            return None  # An earlier release wrote it.


def _digest(session: Session) -> str:
    """Return what names a session, however often its tokens are refreshed."""
    return hashlib.sha256(session.csrf_token.encode()).hexdigest()[:_DIGEST_CHARS]
