"""Issue and check reporting tokens: short-lived JWTs by which a publisher confirms that a person agreed."""

from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias

from soundmark_sdk.clock import Clock, SystemClock
from soundmark_sdk.measuring import Consent
from soundmark_sdk.members import INTEGRATION_ID

try:
    import jwt
except ImportError:
    raise ImportError(
        "Reporting tokens need PyJWT, which the extra soundmark-sdk[publisher] installs: pip install pyjwt"
    ) from None

# API v1, "Authentication", 8.
LIFETIME_MAX: Final = timedelta(minutes=5)
# Another machine may issue a token, and its clock may be ahead.
CLOCK_SKEW_MAX_S: Final = 10
KEY_BYTES_MIN: Final = 32  # RFC 7518, section 3.2
TOKEN_CHARACTERS_MAX: Final = 8192

# Only one algorithm, so that a token cannot choose a weaker one.
_ALGORITHM: Final = "HS256"
_CONSENT, _INTEGRATION = "svc_audience_consent", "svc_audience_integration_id"

Refusal: TypeAlias = Literal["malformed", "expired", "consent_missing", "other_integration"]


class SessionRefused(Exception):
    """A reporting token was refused, for one of four reasons. The message holds nothing of the token."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"The reporting token was refused: {refusal}.")
        self.refusal: Final[Refusal] = refusal


class ReportingTokens:
    """An issuer and checker of the reporting tokens of one integration, with the publisher's own key (HS256).

    The publisher chooses the key; it is not the integration's HMAC secret. The same key issues and checks, because the
    reference backend is one program. If another program issues the tokens, give it the same key.
    """

    def __init__(self, key: bytes, integration_id: str, *, clock: Clock | None = None) -> None:
        """Raises: ValueError, without the key, for a key of less than 32 bytes or a malformed integration id."""
        if len(key) < KEY_BYTES_MIN:
            raise ValueError("The reporting key must be at least 32 bytes.")
        if INTEGRATION_ID.fullmatch(integration_id) is None:
            raise ValueError("That is not the id of an integration.")
        self._key: Final = key
        self.integration_id: Final = integration_id
        self._clock: Final[Clock] = SystemClock() if clock is None else clock

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.integration_id!r})"

    def issue(self, consent: Consent, *, lifetime: timedelta = LIFETIME_MAX) -> str:
        """Return a token for a receiver whose person agreed. It holds only the consent, the integration and times.

        Raises: ValueError for a consent to another integration or in the future, or a lifetime over five minutes.
        """
        now = self._clock.now()
        if consent.integration_id != self.integration_id or consent.given_at > now:
            raise ValueError("The consent does not cover this integration now.")
        if not timedelta(seconds=1) <= lifetime <= LIFETIME_MAX:
            raise ValueError("A reporting token lives for 1 second to 5 minutes.")
        issued_at = int(now.timestamp())
        claims = {
            "iat": issued_at,
            "exp": issued_at + int(lifetime.total_seconds()),
            _CONSENT: True,
            _INTEGRATION: self.integration_id,
        }
        return jwt.encode(claims, self._key, algorithm=_ALGORITHM)

    def check(self, token: str) -> None:
        """Accept only a token of this key that is valid now, with a person's consent to this integration.

        Other claims are ignored, except for `aud` and `nbf`: a token with an audience, or that is not valid yet, is
        refused.

        Raises: SessionRefused.
        Source: API v1, "Authentication", 8; RFC 7519.
        """
        claims = self._read(token)
        issued_at, expires_at = _require_seconds(claims["iat"]), _require_seconds(claims["exp"])
        if not 0 < expires_at - issued_at <= LIFETIME_MAX.total_seconds():
            raise SessionRefused("malformed")
        now_s = self._clock.now().timestamp()
        begins_at = max(issued_at, _require_seconds(claims.get("nbf", issued_at)))
        if now_s >= expires_at or begins_at > now_s + CLOCK_SKEW_MAX_S:
            raise SessionRefused("expired")
        if claims.get(_CONSENT) is not True:
            raise SessionRefused("consent_missing")
        if claims.get(_INTEGRATION) != self.integration_id:
            raise SessionRefused("other_integration")

    def _read(self, token: str) -> dict[str, Any]:
        if len(token) > TOKEN_CHARACTERS_MAX:
            raise SessionRefused("malformed")
        # The times are checked in `check`, with our own clock and more strictly.
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key,
                algorithms=[_ALGORITHM],
                options={"verify_exp": False, "verify_iat": False, "verify_nbf": False, "require": ["iat", "exp"]},
            )
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise SessionRefused("malformed") from None
        return claims


def _require_seconds(value: object) -> int:
    # Whole seconds, as `issue` writes them; not a string, a boolean or a fraction.
    if type(value) is not int:
        raise SessionRefused("malformed")
    return value
