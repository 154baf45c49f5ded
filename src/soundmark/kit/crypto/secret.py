"""A value that must not be seen."""

import hashlib
import hmac
from typing import Final


class Secret:
    """Holds a text that never prints: not in a log, a traceback's repr, an f-string or a pickle."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text: Final = text

    def reveal(self) -> str:
        """The text itself, for the one place that must send or compare it."""
        return self._text

    def equals(self, candidate: str) -> bool:
        """Whether `candidate` is the same text, in time that does not depend on where they differ."""
        return hmac.compare_digest(_digest(self._text), _digest(candidate))

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not copied out of its process")


def _digest(text: str) -> bytes:
    # A lone surrogate stays one: replaced, it would equal a question mark.
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
