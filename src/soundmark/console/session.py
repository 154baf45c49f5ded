"""Sessions: who is signed in, kept sealed in the browser and nowhere else."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from soundmark.console.sealed_cookies import CookieJar
from soundmark.kit.clock import Clock

_NAME: Final = "session"
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
        """Return the session of a request; None without one, or if it was altered or has lasted too long."""
        session = self._open(request)
        return session if session is not None and self.clock.now() - session.started_at < LIFETIME else None

    def find_subject(self, request: Request) -> str | None:
        """Return the person whose session it is, even if it has lasted too long, or None if that is unknown."""
        session = self._open(request)
        return None if session is None else session.subject

    def write(self, request: Request, response: Response, session: Session) -> None:
        """Put a session into the browser, in place of the one that is there.

        Raises: sealed_cookies.CookieTooLarge.
        """
        chunks_count = self.jar.write(response, _NAME, session)
        self.jar.clear(response, _NAME, request.cookies, beyond=chunks_count)

    def clear(self, request: Request, response: Response) -> None:
        """Remove the session from the browser."""
        self.jar.clear(response, _NAME, request.cookies)

    def _open(self, request: Request) -> Session | None:
        value = self.jar.read(_NAME, request.cookies)
        try:
            return None if value is None else msgspec.convert(value, Session)
        except msgspec.ValidationError:
            return None  # An earlier release wrote it.
