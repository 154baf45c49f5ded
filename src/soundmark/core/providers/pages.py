"""Addresses of the providers' pages, to which Core sends people."""

import re
from typing import Final

from soundmark.kit.text.validation import is_secure_url

_URL_CHARS_MAX: Final = 8192
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")


def is_page_url(text: str) -> bool:
    """Return whether people may be sent to `text`: `https`, or `http` on a loopback address.

    Unlike other URLs it may have a fragment: the pages of the card provider do.
    """
    if len(text) > _URL_CHARS_MAX or _PRINTABLE.fullmatch(text) is None:
        return False
    return is_secure_url(text.partition("#")[0])
