"""Attempts to sign in: what the console must remember while a person is at the identity provider."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from soundmark.console.sealed_cookies import CookieJar
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.text import base64url

# Long enough to find the phone with the one-time passwords, or to set a new password by mail.
LIFETIME: Final = timedelta(minutes=20)
# Each tab in which somebody signs in has a cookie of its own; a request head has room for few.
ATTEMPTS_MAX: Final = 5
_SECRET_BYTES: Final = 32
_NAME: Final = "attempt-"
_NAME_CHARS: Final = 16
# The first character of the state says whether the attempt began because another one was lost. The provider returns the
# state even if the browser keeps no cookies, so that people do not go round in circles.
_FIRST: Final = "f"
_REPEATED: Final = "r"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt. `subject` is the person who must return from a step-up to the second factor, None in other cases."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    return_to: str
    began_at: datetime
    needs_second_factor: bool = False
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts in the browsers' cookies, one cookie for each."""

    jar: CookieJar
    clock: Clock
    entropy: Entropy

    def make(
        self, return_to: str, *, needs_second_factor: bool = False, subject: str | None = None, repeated: bool = False
    ) -> Attempt:
        """Return a new attempt."""
        return Attempt(
            state=(_REPEATED if repeated else _FIRST) + self._take_secret(),
            nonce=self._take_secret(),
            verifier=self._take_secret(),
            return_to=return_to,
            began_at=self.clock.now(),
            needs_second_factor=needs_second_factor,
            subject=subject,
        )

    def write(self, request: Request, response: Response, attempt: Attempt) -> None:
        """Remember an attempt in the browser, and forget the oldest if there are too many."""
        known = sorted(self._read_all(request), key=lambda each: each[1].began_at)
        for name, _ in known[: max(0, len(known) - ATTEMPTS_MAX + 1)]:
            self.jar.clear(response, name, request.cookies)
        self.jar.write(response, _name_of(attempt.state), attempt, max_age_s=int(LIFETIME.total_seconds()))

    def find(self, request: Request, state: str) -> Attempt | None:
        """Return the attempt with this state, or None: it is finished, too old or was never begun in this browser."""
        attempt = self._read(request, _name_of(state))
        return attempt if attempt is not None and attempt.state == state else None

    def forget(self, request: Request, response: Response, state: str) -> None:
        """Remove an attempt from the browser, so that nothing can finish it again."""
        self.jar.clear(response, _name_of(state), request.cookies)

    def _read_all(self, request: Request) -> list[tuple[str, Attempt]]:
        start = f"{self.jar.prefix}{_NAME}"
        names = [name.removeprefix(self.jar.prefix) for name in request.cookies if name.startswith(start)]
        return [(name, attempt) for name in names if (attempt := self._read(request, name)) is not None]

    def _read(self, request: Request, name: str) -> Attempt | None:
        try:
            attempt = msgspec.convert(self.jar.read(name, request.cookies), Attempt)
        except msgspec.ValidationError:
            return None
        return attempt if timedelta(0) <= self.clock.now() - attempt.began_at < LIFETIME else None

    def _take_secret(self) -> str:
        return base64url.encode(self.entropy.take(_SECRET_BYTES))


def was_repeated(state: str) -> bool:
    """Return whether the attempt with this state had already replaced one that was lost."""
    return state.startswith(_REPEATED)


def _name_of(state: str) -> str:
    return _NAME + hashlib.sha256(state.encode()).hexdigest()[:_NAME_CHARS]
