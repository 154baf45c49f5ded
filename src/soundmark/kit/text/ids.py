"""Identifiers and secrets: a prefix and base64url characters from the entropy source."""

import re
from typing import Final

from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.text import base64url

ID_CHARS: Final = 22  # 132 random bits: contract, section 1.
SECRET_BYTES: Final = 32  # 256 random bits, 43 characters.
NO_ID: Final = "none"

_ID_TEXT: Final = re.compile(r"[a-z]{2,8}_[A-Za-z0-9_-]{1,128}", re.ASCII)


def mint(entropy: Entropy, prefix: str, chars: int = ID_CHARS) -> str:
    """Return a new identifier: `prefix` (with its underscore) and `chars` characters of 6 random bits each."""
    return prefix + base64url.encode(entropy.take((chars * 6 + 7) // 8))[:chars]


def mint_secret(entropy: Entropy, prefix: str) -> str:
    """Return a new secret: `prefix` and 43 characters with 256 random bits."""
    return prefix + base64url.encode(entropy.take(SECRET_BYTES))


def may_be_id(text: str) -> bool:
    """Return whether an id could have this spelling."""
    return _ID_TEXT.fullmatch(text) is not None


def parse_id(text: str) -> str:
    """Return the id that a caller sent, or `NO_ID` for a text that no id can be.

    Nothing has the id `NO_ID`, so such a text is not found like any other unknown id. The text itself, which may hold
    characters that PostgreSQL refuses, goes no further.
    """
    return text if may_be_id(text) else NO_ID
