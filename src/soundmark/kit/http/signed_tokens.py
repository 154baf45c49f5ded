"""Signed tokens (JWTs) of an OpenID Connect issuer: from the text to claims that the issuer really made."""

import re
from collections.abc import Mapping
from typing import Any, Final

import jwt

from soundmark.kit.http.issuer_keys import ALGORITHMS, IssuerKeys
from soundmark.kit.http.strict_json import MalformedJson, parse_json
from soundmark.kit.text import base64url

# Three parts in base64url without padding: RFC 7515, section 3.1.
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_JWS: Final = jwt.PyJWS(algorithms=list(ALGORITHMS))

Header = Mapping[str, Any]
Claims = Mapping[str, Any]


class TokenRefused(Exception):
    """The text is no token that the issuer signed with a key and an algorithm that we accept."""


async def read_signed_token(keys: IssuerKeys, token: str, *, bytes_max: int) -> tuple[Header, Claims]:
    """Return the header and the claims that the issuer signed; nothing else about them is checked.

    Raises: TokenRefused; IssuerUnavailable.
    """
    # The shape is checked first, so that a malformed token causes no request to the issuer.
    if len(token) > bytes_max or _COMPACT.fullmatch(token) is None:
        raise TokenRefused
    header = _read_header(token)
    kid, algorithm = header.get("kid"), header.get("alg")
    if not isinstance(kid, str) or algorithm not in ALGORITHMS:
        raise TokenRefused
    key = await keys.find(kid, algorithm)
    if key is None:
        raise TokenRefused
    try:
        # The algorithm is that of the key, whatever the token claims.
        signed: bytes = _JWS.decode(token, key, algorithms=[key.algorithm_name])
        claims = parse_json(signed)
    except (jwt.PyJWTError, MalformedJson):
        raise TokenRefused from None
    if not isinstance(claims, dict):
        raise TokenRefused
    return header, claims


def _read_header(token: str) -> Header:
    """Return the token's header, which is not verified yet.

    Raises: TokenRefused, also for a repeated name, which two parsers could read differently.
    Source: RFC 7515, section 4.
    """
    try:
        header = parse_json(base64url.decode(token.partition(".")[0]))
    except ValueError:
        raise TokenRefused from None
    if not isinstance(header, dict):
        raise TokenRefused
    return header
