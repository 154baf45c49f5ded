"""What may stand in no log, and a look at every log that the test run captures."""

import re

# Server key, invitation, HMAC secret, operator token; broadcast token; access token. Contract, sections 1 and 2.
SHAPES = re.compile(
    r"x(?:ak|in|hm|op)_[A-Za-z0-9_-]{43}|brd_[A-Za-z0-9_-]{16}|eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"
)
_CHARS_MIN = 8  # A shorter value would stand in a log by chance.

_made: set[str] = set()


def remember_secret(secret: str) -> None:
    """From now on this value may stand in no log either: one that no shape tells from other text."""
    if len(secret) >= _CHARS_MIN:
        _made.add(secret)


def find_leaks(log: str) -> set[str]:
    """The secrets in `log`: whatever looks like one, and every one that was remembered."""
    return set(SHAPES.findall(log)) | {secret for secret in _made if secret in log}
