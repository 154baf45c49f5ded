"""Access tokens of an OpenID Connect issuer as credentials of people."""

import re
from pathlib import Path
from typing import Any, Final

from soundmark.core.access.refused_tokens import ClaimFault, RefusedTokens
from soundmark.core.domain.tenancy.scope import User
from soundmark.core.problems import EmailNotVerified, IdentityProviderUnavailable
from soundmark.kit.clock import Clock
from soundmark.kit.http.outbound.issuer_keys import TIMEOUT_S, IssuerKeys, IssuerUnavailable
from soundmark.kit.http.outbound.signed_tokens import Claims, Header, TokenRefused, read_signed_token
from soundmark.kit.http.responses.problems import Unauthenticated

_TOKEN_MAX_BYTES: Final = 8 * 1024  # Contract, section 2, as are the next two.
_LEEWAY_S: Final = 60
_SUBJECT_CHARS_MAX: Final = 255
_EMAIL_CHARS_MAX: Final = 254  # RFC 5321, section 4.5.3.1.3, less the angle brackets.
_PLATFORM_ROLE: Final = "svc_platform_admin"
# No database text can hold NUL, and nothing that people read should hold the others.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_MEDIA_TYPE: Final = "application/at+jwt"  # RFC 9068, section 2.1.


class OidcAccess:
    """Identifies people by the access tokens that one issuer gave to one client.

    A rejection never states the reason, because the holder of a genuine token can read it; the log does.
    """

    def __init__(
        self,
        issuer: str,
        client_id: str,
        clock: Clock,
        *,
        timeout_s: float = TIMEOUT_S,
        extra_ca_file: Path | None = None,
    ) -> None:
        self._issuer: Final = issuer
        self._client_id: Final = client_id
        self._clock: Final = clock
        self._keys: Final = IssuerKeys(issuer, clock, timeout_s=timeout_s, extra_ca_file=extra_ca_file)
        self._refused: Final = RefusedTokens(clock)

    def start(self) -> None:
        """Begin to read the issuer's keys in the background; the log reports what is wrong with the issuer."""
        self._keys.start()

    async def user_of(self, token: str) -> User:
        """Return the verified person.

        Raises: Unauthenticated; EmailNotVerified if that is all that is wrong; IdentityProviderUnavailable.
        Source: contract, section 2.
        """
        header, claims = await self._verify(token)
        fault = self._find_fault(header, claims)
        if fault is not None:
            self._refused.report(fault)
            raise EmailNotVerified if fault == "email_not_verified" else Unauthenticated
        return _user(claims)

    async def aclose(self) -> None:
        """Close the connections to the issuer."""
        await self._keys.aclose()

    async def _verify(self, token: str) -> tuple[Header, Claims]:
        """Return the header and the claims that the issuer signed.

        Raises: Unauthenticated; IdentityProviderUnavailable.
        """
        try:
            return await read_signed_token(self._keys, token, bytes_max=_TOKEN_MAX_BYTES)
        except TokenRefused as refused:
            self._refused.report(refused.reason)
            raise Unauthenticated from None
        except IssuerUnavailable:
            raise IdentityProviderUnavailable from None

    def _find_fault(self, header: Header, claims: Claims) -> ClaimFault | None:
        """Return why a genuine token identifies nobody to us; None if it does.

        An unverified e-mail address is reported only if that is all that is wrong.
        """
        if claims.get("iss") != self._issuer:
            return "another_issuer"
        if self._client_id not in _clients(claims):
            return "another_client"
        return _find_fault_of_time(claims, self._clock.unix_s()) or _find_fault_of_person(header, claims)


def _clients(claims: Claims) -> list[Any]:
    """Return the clients that a token may have been issued to.

    `aud` counts only if no other claim names a client: an issuer may list our client there in everybody's tokens.

    Source: contract, section 2; `azp`: OpenID Connect Core 1.0, section 2; `client_id`: RFC 9068, section 2.2.
    """
    for name in ("azp", "client_id"):
        if name in claims:
            return [claims[name]]
    audience = claims.get("aud")
    return audience if isinstance(audience, list) else [audience]


def _is_access_token(header: Header, claims: Claims) -> bool:
    """Return whether the issuer marked this as an access token.

    ID tokens, refresh tokens and signed userinfo are marked as something else or not at all, whatever other claims they
    lack. A `typ` claim takes precedence over the header.

    Source: contract, section 2.
    """
    if "typ" in claims:
        return bool(claims["typ"] == "Bearer")
    media_type = header.get("typ")
    if not isinstance(media_type, str):
        return False
    # Media types are case-insensitive, and `application/` may be omitted: RFC 7515, section 4.1.9.
    full = media_type.lower() if "/" in media_type else f"application/{media_type.lower()}"
    return full == _MEDIA_TYPE


def _find_fault_of_time(claims: Claims, now_s: float) -> ClaimFault | None:
    """Return why the token is not valid at this time, within the leeway; None if it is. Only `exp` is required."""
    times = {name: claims[name] for name in ("exp", "nbf", "iat") if name in claims}
    # `isinstance` would accept True as a number: the first second of 1970.
    if any(type(value) not in {int, float} for value in times.values()) or "exp" not in times:
        return "no_valid_times"
    if max(times.get("nbf", 0), times.get("iat", 0)) > now_s + _LEEWAY_S:
        return "not_yet_valid"
    return "expired" if times["exp"] <= now_s - _LEEWAY_S else None


def _find_fault_of_person(header: Header, claims: Claims) -> ClaimFault | None:
    """Return why the token of our client gives nobody access; None if it does."""
    if not _is_access_token(header, claims):
        return "not_an_access_token"
    if not _is_text(claims.get("sub"), _SUBJECT_CHARS_MAX):
        return "no_subject"
    if claims.get("email_verified") is not True or not _is_text(claims.get("email"), _EMAIL_CHARS_MAX):
        return "email_not_verified"
    return None


def _user(claims: Claims) -> User:
    """Return the person that claims without a fault identify."""
    access = claims.get("realm_access")
    roles = access.get("roles") if isinstance(access, dict) else None
    return User(
        subject_id=str(claims["sub"]),
        email=str(claims["email"]),
        has_mfa=claims.get("acr") == "2" or (isinstance(claims.get("amr"), list) and "otp" in claims["amr"]),
        is_platform_admin=isinstance(roles, list) and _PLATFORM_ROLE in roles,
    )


def _is_text(value: Any, chars_max: int) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= chars_max and _CONTROL.search(value) is None
