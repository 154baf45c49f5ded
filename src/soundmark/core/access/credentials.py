"""From a bearer credential to the caller it identifies."""

from typing import Final, Protocol

from soundmark.core.access.operator import PREFIX as OPERATOR_PREFIX
from soundmark.core.access.operator import OperatorAccess
from soundmark.core.domain.tenancy.scope import Caller, ServerKey, User
from soundmark.kit.http.responses.problems import Unauthenticated

KEY_PREFIX: Final = "xak_"


class AccessTokens(Protocol):
    """Identifies people by access tokens of an identity provider."""

    async def user_of(self, token: str) -> User:
        """Return the verified person.

        Raises: Unauthenticated; EmailNotVerified; IdentityProviderUnavailable.
        """
        ...


class ServerKeys(Protocol):
    """Identifies API keys by their secrets."""

    async def key_of(self, secret: str) -> ServerKey:
        """Return the key, which is neither revoked nor expired.

        Raises: Unauthenticated; DatabaseUnavailable.
        """
        ...


class Credentials:
    """All kinds of credentials, distinguished by their prefix.

    The operator token is not accepted once an identity provider is configured.
    """

    def __init__(self, operator: OperatorAccess, keys: ServerKeys, tokens: AccessTokens | None) -> None:
        self._operator: Final = operator
        self._keys: Final = keys
        self._tokens: Final = tokens

    async def caller_of(self, credential: str, peer: str | None) -> Caller:
        """Return the caller. `peer` is the address of the socket's peer, never one that a header claims.

        Raises: Unauthenticated; EmailNotVerified; IdentityProviderUnavailable; DatabaseUnavailable.
        """
        if credential.startswith(KEY_PREFIX):
            return await self._keys.key_of(credential)
        if self._tokens is None:
            operator = self._operator.user_of(credential, peer) if credential.startswith(OPERATOR_PREFIX) else None
            if operator is None:
                raise Unauthenticated
            return operator
        if credential.startswith(OPERATOR_PREFIX):
            raise Unauthenticated
        return await self._tokens.user_of(credential)
