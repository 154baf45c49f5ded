"""Refused access tokens in the log: one line for each, with the reason, as far as the log has room."""

from typing import Final, Literal, TypeAlias

import structlog

from soundmark.kit.clock import Clock
from soundmark.kit.http.limits.local import LocalRateLimit
from soundmark.kit.http.outbound.signed_tokens import TokenFault

# Why a token that the issuer signed is not accepted. The operating guide explains each reason.
ClaimFault: TypeAlias = Literal[
    "another_issuer",
    "another_client",
    "no_valid_times",
    "not_yet_valid",
    "expired",
    "not_an_access_token",
    "no_subject",
    "email_not_verified",
]
# Anybody can send tokens. A flood with one reason neither fills the log nor hides the other reasons.
LINES_MAX: Final = 10
WINDOW_S: Final = 60

_log: Final = structlog.get_logger()


class RefusedTokens:
    """The lines of the log about refused access tokens: at most ten a minute for each reason, in each process.

    Nothing of a token is in them. The first line after some were left out says how many.
    """

    def __init__(self, clock: Clock) -> None:
        self._lines: Final = LocalRateLimit(LINES_MAX, WINDOW_S, clock)
        self._left_out: Final[dict[str, int]] = {}

    def report(self, reason: TokenFault | ClaimFault) -> None:
        """Log one refused token, unless there were too many lines with this reason."""
        if not self._lines.count(reason.encode()).is_allowed:
            self._left_out[reason] = self._left_out.get(reason, 0) + 1
            return
        left_out = self._left_out.pop(reason, 0)
        _log.warning("access_token_refused", reason=reason, **({"left_out": left_out} if left_out else {}))
