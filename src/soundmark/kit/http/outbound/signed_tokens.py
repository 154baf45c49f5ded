"""Signed tokens (JWTs) of an OpenID Connect issuer: from the text to claims that the issuer really made."""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import jwt

from soundmark.kit.http.outbound.issuer_keys import ALGORITHMS, IssuerKeys
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json
from soundmark.kit.text import base64url

# Three parts in base64url without padding: RFC 7515, section 3.1.
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_JWS: Final = jwt.PyJWS(algorithms=list(ALGORITHMS))

Header = Mapping[str, Any]
Claims = Mapping[str, Any]


# Why a text is no token of the issuer; the operating guide explains each.
TokenFault: TypeAlias = Literal["too_large", "malformed", "algorithm", "no_kid", "unknown_kid", "bad_signature"]


class TokenRefused(Exception):
    """The text is no token that the issuer signed with a key and an algorithm that we accept."""

    def __init__(self, reason: TokenFault) -> None:
        super().__init__(reason)
        self.reason: Final = reason


async def read_signed_token(keys: IssuerKeys, token: str, *, bytes_max: int) -> tuple[Header, Claims]:
    """Return the header and the claims that the issuer signed; nothing else about them is checked.

    Raises: TokenRefused; IssuerUnavailable.
    """
    # The shape is checked first, so that a malformed token causes no request to the issuer.
    if len(token) > bytes_max:
        raise TokenRefused("too_large")
    if _COMPACT.fullmatch(token) is None:
        raise TokenRefused("malformed")
    header = _read_header(token)
    kid, algorithm = header.get("kid"), header.get("alg")
    if algorithm not in ALGORITHMS:
        raise TokenRefused("algorithm")
    key = await keys.find(kid, algorithm)
    if key is None:
        raise TokenRefused(_explain_missing_key(keys, kid))
    try:
        # The algorithm is that of the key, whatever the token claims.
        signed: bytes = _JWS.decode(token, key, algorithms=[key.algorithm_name])
        claims = parse_json(signed)
    except jwt.InvalidSignatureError:
        raise TokenRefused("bad_signature") from None
    except (jwt.PyJWTError, MalformedJson):
        raise TokenRefused("malformed") from None
    if not isinstance(claims, dict):
        raise TokenRefused("malformed")
    return header, claims


def _read_header(token: str) -> Header:
    """Return the token's header, which is not verified yet. Its `kid` is a text or missing.

    Raises: TokenRefused, also for a repeated name, which two parsers could read differently.
    Source: RFC 7515, section 4.
    """
    try:
        header = parse_json(base64url.decode(token.partition(".")[0]))
    except ValueError:
        raise TokenRefused("malformed") from None
    if not isinstance(header, dict) or not isinstance(header.get("kid", ""), str):
        raise TokenRefused("malformed")
    return header


def _explain_missing_key(keys: IssuerKeys, kid: str | None) -> TokenFault:
    if kid is None:
        return "no_kid"
    return "algorithm" if keys.knows(kid) else "unknown_kid"
