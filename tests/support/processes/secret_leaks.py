"""What no log may contain, searched for in every log that the test run captures."""

import re

# API key, invitation, HMAC secret, operator token; broadcast token; access token. Contract, sections 1 and 2.
SHAPES = re.compile(
    r"x(?:ak|in|hm|op)_[A-Za-z0-9_-]{43}|brd_[A-Za-z0-9_-]{16}|eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"
)
_CHARS_MIN = 8  # A shorter value would stand in a log by chance.

_made: set[str] = set()


def remember_secret(secret: str) -> None:
    """Search every log for this value too, which has no shape of its own."""
    if len(secret) >= _CHARS_MIN:
        _made.add(secret)


def find_leaks(log: str) -> set[str]:
    """Return the secrets in `log`: values with the shape of one, and those that were remembered."""
    return set(SHAPES.findall(log)) | {secret for secret in _made if secret in log}
