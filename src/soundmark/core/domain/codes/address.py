"""The address of a Code: the beginning of its intent's `resource.url`, in the form in which lists compare it.

Addresses are compared as text, character by character. The case of ASCII letters does not count before the path, that
is up to the first `/`, `?` or `#` after `://`; in a text without `://` it counts nowhere. Nothing is decoded.
Source: contract, section 3, `address_prefix`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

# A Code's address ends after as many characters as the longest prefix that a caller may look for.
ADDRESS_CHARS_MAX: Final = 200
# That of a Code whose intent has no address. Every prefix has a character, so none finds it.
NO_ADDRESS: Final = b""

_AFTER_SCHEME: Final = "://"
_PATH: Final = re.compile(r"[/?#]")


def address_of(resource: Mapping[str, Any]) -> bytes:
    """Return the address of an intent with this `resource`."""
    url = resource.get("url")
    return comparable_form(url) if isinstance(url, str) else NO_ADDRESS


def comparable_form(text: str) -> bytes:
    """Return the first `ADDRESS_CHARS_MAX` characters, as UTF-8, with ASCII letters before the path in lower case.

    One text begins with another, where case does not count, exactly if the same is true of these bytes.
    """
    # In this order: what is cut off has no influence on what is left.
    cut = text[:ADDRESS_CHARS_MAX]
    scheme_end = cut.find(_AFTER_SCHEME)
    path = _PATH.search(cut, scheme_end + len(_AFTER_SCHEME)) if scheme_end >= 0 else None
    # The `lower` of bytes leaves other letters alone.
    if path is None:
        return cut.encode().lower()
    return cut[: path.start()].encode().lower() + cut[path.start() :].encode()


def bounds_of(prefix: str) -> tuple[bytes, bytes]:
    """Return two bounds: a Code's address begins with the prefix if it is at least the first, and below the second."""
    least = comparable_form(prefix)
    assert least, "a prefix has a character"
    return least, least[:-1] + bytes([least[-1] + 1])  # No byte of UTF-8 is 255.
