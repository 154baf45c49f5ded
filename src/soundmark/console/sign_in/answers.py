"""Judging what the browser brings back from the identity provider."""

from http import HTTPStatus
from typing import Final, Literal, TypeAlias

import structlog

from soundmark.console.sign_in.attempts import Attempt
from soundmark.console.sign_in.identity_provider import (
    GrantRefused,
    Identity,
    IdentityProvider,
    IdentityRefused,
    ProviderUnavailable,
    Tokens,
)

FailureCode: TypeAlias = Literal[
    "identity_provider_unavailable",
    "sign_in.not_configured",
    "sign_in.lost",
    "sign_in.declined",
    "sign_in.answer_refused",
    "sign_in.no_second_factor",
    "sign_in.another_person",
    "sign_in.tokens_too_large",
]
# Of a provider that failed, not of a person who declined: RFC 6749, section 4.1.2.1.
_FAULTS: Final = frozenset({"server_error", "temporarily_unavailable"})

_log: Final = structlog.get_logger()


class SignInFailed(Exception):
    """Nobody was signed in; a page says why."""

    def __init__(self, code: FailureCode) -> None:
        super().__init__(code)
        self.code: Final = code

    @property
    def status(self) -> HTTPStatus:
        """The status of the page."""
        match self.code:
            case "identity_provider_unavailable" | "sign_in.tokens_too_large":
                return HTTPStatus.SERVICE_UNAVAILABLE
            case "sign_in.not_configured":
                return HTTPStatus.NOT_FOUND
            case "sign_in.lost":
                return HTTPStatus.BAD_REQUEST
            case _:
                return HTTPStatus.FORBIDDEN


async def judge_answer(
    provider: IdentityProvider, attempt: Attempt, *, issuer: str | None, code: str | None, error: str | None
) -> tuple[Identity, Tokens]:
    """Return the person that the provider's answer to this attempt identifies; the answer may name its `issuer`.

    Raises: SignInFailed.
    """
    await _require_own_answer(provider, issuer)
    if error in _FAULTS:
        raise SignInFailed("identity_provider_unavailable")
    if error is not None:
        raise SignInFailed("sign_in.no_second_factor" if attempt.needs_second_factor else "sign_in.declined")
    if code is None:
        raise SignInFailed("sign_in.answer_refused")
    identity, tokens = await _redeem(provider, attempt, code)
    if attempt.subject is not None and identity.subject != attempt.subject:
        raise SignInFailed("sign_in.another_person")
    if attempt.needs_second_factor and not identity.has_second_factor:
        raise SignInFailed("sign_in.no_second_factor")
    return identity, tokens


async def _require_own_answer(provider: IdentityProvider, issuer: str | None) -> None:
    """Make sure that the code is not sent to a provider that did not give it."""
    try:
        is_own = await provider.may_have_answered(issuer)
    except ProviderUnavailable:
        raise SignInFailed("identity_provider_unavailable") from None
    if not is_own:
        _log.warning("identity_refused", claim="iss")
        raise SignInFailed("sign_in.answer_refused")


async def _redeem(provider: IdentityProvider, attempt: Attempt, code: str) -> tuple[Identity, Tokens]:
    try:
        return await provider.finish(attempt, code)
    except ProviderUnavailable:
        raise SignInFailed("identity_provider_unavailable") from None
    except GrantRefused:
        raise SignInFailed("sign_in.lost") from None
    except IdentityRefused as refused:
        _log.warning("identity_refused", claim=refused.claim)
        raise SignInFailed("sign_in.answer_refused") from None
