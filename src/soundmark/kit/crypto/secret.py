"""A type for values that must never be printed."""

import hashlib
import hmac
from collections.abc import Collection, Iterable
from typing import Final


class Secret:
    """A text that is never printed: not in a log, a repr in a traceback, an f-string or a pickle."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text: Final = text

    def reveal(self) -> str:
        """Return the text itself, for the one place that must send or compare it."""
        return self._text

    def equals(self, candidate: str) -> bool:
        """Return whether `candidate` is the same text, in time that does not depend on where they differ."""
        return hmac.compare_digest(_digest(self._text), _digest(candidate))

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not copied out of its process")


def split_secrets(configured: Secret) -> tuple[Secret, ...]:
    """Return the secrets that a setting holds: one, or two with a comma between while one is replaced."""
    return tuple(Secret(text) for each in configured.reveal().split(",") if (text := each.strip()))


def any_equal(expected: Iterable[bytes], given: Collection[bytes]) -> bool:
    """Return whether one of `given` is one of `expected`, in time that tells neither which one agrees nor where."""
    return sum(hmac.compare_digest(one, other) for one in expected for other in given) > 0


def _digest(text: str) -> bytes:
    # A lone surrogate is kept, because its replacement would equal a question mark.
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
