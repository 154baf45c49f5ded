"""Access tokens of an OpenID Connect issuer as credentials of people."""

import re
from collections.abc import Mapping
from typing import Any, Final

import jwt

from soundmark.core.access.issuer_keys import ALGORITHMS, TIMEOUT_S, IssuerKeys
from soundmark.core.domain.scope import User
from soundmark.core.problems import EmailNotVerified
from soundmark.kit.clock import Clock
from soundmark.kit.problems import Unauthenticated
from soundmark.kit.strict_json import MalformedJson, parse_json

_TOKEN_MAX_BYTES: Final = 8 * 1024  # Contract, section 2, as are the next two.
_LEEWAY_S: Final = 60
_SUBJECT_CHARS_MAX: Final = 255
_EMAIL_CHARS_MAX: Final = 254  # RFC 5321, section 4.5.3.1.3, less the angle brackets.
_PLATFORM_ROLE: Final = "svc_platform_admin"
# No database text can hold the first of them, and nothing that people read should hold the others.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
# The parts of a token that only an ID token has: hashes of what it was issued with (OpenID Connect Core 1.0, 3.1.3.6).
_OF_ID_TOKENS: Final = ("at_hash", "c_hash")

_JWS: Final = jwt.PyJWS(algorithms=list(ALGORITHMS))

Claims = Mapping[str, Any]


class OidcAccess:
    """Knows people by the access tokens that one issuer gave to one client.

    Why a token is refused is never said: whoever has a right one can read it.
    """

    def __init__(self, issuer: str, client_id: str, clock: Clock, *, timeout_s: float = TIMEOUT_S) -> None:
        self._issuer: Final = issuer
        self._client_id: Final = client_id
        self._clock: Final = clock
        self._keys: Final = IssuerKeys(issuer, clock, timeout_s=timeout_s)

    def start(self) -> None:
        """Begin to read the issuer's keys; nobody waits for it, and the log says what is wrong with the issuer."""
        self._keys.start()

    async def user_of(self, token: str) -> User:
        """The verified person.

        Raises: Unauthenticated; EmailNotVerified for a token that is good but for that; IdentityProviderUnavailable.
        Source: contract, section 2.
        """
        claims = await self._verified(token)
        if not self._is_for_us(claims):
            raise Unauthenticated
        return _user(claims)

    async def aclose(self) -> None:
        """Let go of what the issuer's keys are read with."""
        await self._keys.aclose()

    async def _verified(self, token: str) -> Claims:
        """What the issuer signed.

        Raises: Unauthenticated; IdentityProviderUnavailable.
        """
        if len(token) > _TOKEN_MAX_BYTES or not token.isascii():
            raise Unauthenticated
        try:
            header = _JWS.get_unverified_header(token)
        except jwt.PyJWTError:
            raise Unauthenticated from None
        kid, algorithm = header.get("kid"), header.get("alg")
        # Judged before the issuer is asked for anything on account of this token.
        if not isinstance(kid, str) or algorithm not in ALGORITHMS:
            raise Unauthenticated
        key = await self._keys.find(kid, algorithm)
        if key is None:
            raise Unauthenticated
        try:
            # The key is bound to its algorithm, which is what is checked with, whatever the token says.
            signed: bytes = _JWS.decode(token, key, algorithms=[key.algorithm_name])
            claims = parse_json(signed)
        except (jwt.PyJWTError, MalformedJson):
            raise Unauthenticated from None
        if not isinstance(claims, dict):
            raise Unauthenticated
        return claims

    def _is_for_us(self, claims: Claims) -> bool:
        """Whether this is an access token of our issuer for our client, now."""
        if "azp" in claims:
            is_of_client = claims["azp"] == self._client_id
        else:
            is_of_client = self._client_id in _texts(claims.get("aud"))
        return (
            claims.get("iss") == self._issuer
            and is_of_client
            and _is_access_token(claims)
            and _is_current(claims, self._clock.unix_s())
        )


def _is_access_token(claims: Claims) -> bool:
    if "typ" in claims:
        return bool(claims["typ"] == "Bearer")
    return not any(name in claims for name in _OF_ID_TOKENS)


def _is_current(claims: Claims, now_s: float) -> bool:
    """Whether the times allow the token, give or take the leeway. `exp` must be there, the others may be."""
    times = {name: claims[name] for name in ("exp", "nbf", "iat") if name in claims}
    # True would be the first second of 1970.
    if any(type(value) not in {int, float} for value in times.values()) or "exp" not in times:
        return False
    begins_s = max(times.get("nbf", 0), times.get("iat", 0))
    return bool(begins_s <= now_s + _LEEWAY_S and now_s - _LEEWAY_S < times["exp"])


def _user(claims: Claims) -> User:
    """The person whom valid claims name.

    Raises: Unauthenticated; EmailNotVerified.
    """
    subject_id, email = claims.get("sub"), claims.get("email")
    if not _is_text(subject_id, _SUBJECT_CHARS_MAX):
        raise Unauthenticated
    if claims.get("email_verified") is not True or not _is_text(email, _EMAIL_CHARS_MAX):
        raise EmailNotVerified
    access = claims.get("realm_access")
    roles = access.get("roles") if isinstance(access, dict) else None
    return User(
        subject_id=str(subject_id),
        email=str(email),
        has_mfa=claims.get("acr") == "2" or (isinstance(claims.get("amr"), list) and "otp" in claims["amr"]),
        is_platform_admin=isinstance(roles, list) and _PLATFORM_ROLE in roles,
    )


def _is_text(value: Any, chars_max: int) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= chars_max and _CONTROL.search(value) is None


def _texts(value: Any) -> list[Any]:
    """One or several, as `aud` may be."""
    return value if isinstance(value, list) else [value]
