"""From what stands behind `Bearer` to a caller."""

from typing import Final, Protocol

from soundmark.core.access.operator import PREFIX as OPERATOR_PREFIX
from soundmark.core.access.operator import OperatorAccess
from soundmark.core.domain.tenancy.scope import Caller, ServerKey, User
from soundmark.kit.http.problems import Unauthenticated

KEY_PREFIX: Final = "xak_"


class AccessTokens(Protocol):
    """Knows the people behind an identity provider's access tokens."""

    async def user_of(self, token: str) -> User:
        """The verified person.

        Raises: Unauthenticated; EmailNotVerified; IdentityProviderUnavailable.
        """
        ...


class ServerKeys(Protocol):
    """Knows the server keys."""

    async def key_of(self, secret: str) -> ServerKey:
        """The key, neither revoked nor expired.

        Raises: Unauthenticated; DatabaseUnavailable.
        """
        ...


class Credentials:
    """Every kind of credential that there is, told apart by how it begins.

    The operator token is none once people sign in with an identity provider.
    """

    def __init__(self, operator: OperatorAccess, keys: ServerKeys, tokens: AccessTokens | None) -> None:
        self._operator: Final = operator
        self._keys: Final = keys
        self._tokens: Final = tokens

    async def caller_of(self, credential: str, peer: str | None) -> Caller:
        """The caller; `peer` is the socket's address and never one that a header claims.

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
