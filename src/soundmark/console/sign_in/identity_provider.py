"""The identity provider as the console needs it, and what can go wrong with it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from soundmark.console.sign_in.attempts import Attempt


class ProviderUnavailable(Exception):
    """The provider cannot be reached or does not answer properly; `reason` is one of our own words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class GrantRefused(Exception):
    """The provider does not accept the code or refresh token: it is used, expired, revoked or never was one."""


class IdentityRefused(Exception):
    """The ID token does not prove that this login took place; `claim` is what is wrong with it, safe to log."""

    def __init__(self, claim: str) -> None:
        super().__init__(claim)
        self.claim = claim


@dataclass(frozen=True, slots=True)
class Tokens:
    """The credentials of one person at Core. Without a refresh token the session ends with the access token."""

    access_token: str = field(repr=False)
    expires_at: datetime
    refresh_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """The person that signed in, as the ID token says. `email` is only for the person's own eyes."""

    subject: str
    email: str | None
    has_second_factor: bool


class IdentityProvider(Protocol):
    """A place where people sign in."""

    async def begin(self, attempt: Attempt, language: str) -> str:
        """Return the URL to which the browser goes to sign in.

        Raises: ProviderUnavailable.
        """
        ...

    async def may_have_answered(self, issuer: str | None) -> bool:
        """Return whether an answer that names this issuer, or none, can be the provider's own.

        Raises: ProviderUnavailable.
        """
        ...

    async def finish(self, attempt: Attempt, code: str) -> tuple[Identity, Tokens]:
        """Exchange the code of a finished login for the person and their tokens.

        Raises: ProviderUnavailable; GrantRefused; IdentityRefused.
        """
        ...

    async def refresh(self, refresh_token: str) -> Tokens:
        """Return new tokens. The refresh token may not be used a second time.

        Raises: ProviderUnavailable; GrantRefused.
        """
        ...

    async def revoke(self, refresh_token: str) -> None:
        """Make a refresh token worthless, if the provider offers that. A failure is in the log and changes nothing."""
        ...

    async def end_session_url(self, return_to: str, language: str) -> str | None:
        """Return the URL at which the provider ends its own session, or None if it has no such page.

        Raises: ProviderUnavailable.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
