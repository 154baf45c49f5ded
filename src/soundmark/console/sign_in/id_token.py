"""ID tokens: who signed in, judged by Authlib after the signature was verified."""

import re
from typing import Any, Final

from authlib.oidc.core import CodeIDToken
from joserfc.errors import JoseError

from soundmark.console.sign_in.identity_provider import Identity, IdentityRefused
from soundmark.kit.http.outbound.signed_tokens import Claims, Header

_LEEWAY_S: Final = 60  # As Core allows for access tokens: contract, section 2.
# Of a claim that is shown, sealed into cookies or compared: contract, section 2, and RFC 5321, section 4.5.3.1.3.
_SUBJECT_CHARS_MAX: Final = 255
_EMAIL_CHARS_MAX: Final = 254
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def read_identity(
    header: Header, claims: Claims, *, issuer: str, client_id: str, nonce: str, access_token: str, now_s: int
) -> Identity:
    """Return the person that an ID token of this issuer names to this client, for the login with this nonce.

    Raises: IdentityRefused.
    Source: OpenID Connect Core 1.0, section 3.1.3.7.
    """
    if not isinstance(claims.get("at_hash", ""), str):
        raise IdentityRefused("at_hash")  # Authlib takes it for text.
    token = CodeIDToken(
        dict(claims),
        dict(header),
        {"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": client_id}},
        {"nonce": nonce, "client_id": client_id, "access_token": access_token},
    )
    try:
        token.validate(now=now_s, leeway=_LEEWAY_S)
    except JoseError as refused:
        raise IdentityRefused(refused.error) from None
    subject, email, methods = claims["sub"], claims.get("email"), claims.get("amr")
    if not _is_text(subject, _SUBJECT_CHARS_MAX):
        raise IdentityRefused("sub")
    return Identity(
        subject=subject,
        email=email if _is_text(email, _EMAIL_CHARS_MAX) else None,
        # As Core judges access tokens: contract, section 2.
        has_second_factor=claims.get("acr") == "2" or (isinstance(methods, list) and "otp" in methods),
    )


def _is_text(value: Any, chars_max: int) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= chars_max and _CONTROL.search(value) is None
