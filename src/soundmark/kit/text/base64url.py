"""Base64url without padding (RFC 4648 section 5), strict in both directions."""

import binascii
from typing import Final

_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
_FROM_URL: Final = bytes.maketrans(b"-_", b"+/")


def encode(data: bytes) -> str:
    """Return `data` in `A-Za-z0-9_-`, without padding."""
    return encode_to_bytes(data).decode("ascii")


def encode_to_bytes(data: bytes) -> bytes:
    """Return what `encode` returns, as ASCII bytes."""
    return binascii.b2a_base64(data, newline=False).rstrip(b"=").translate(_TO_URL)


def decode(text: str) -> bytes:
    """Return the bytes for which `encode` returns exactly this text.

    Raises: ValueError for foreign characters, padding, and for set bits beyond the last byte, so that each value has
        only one spelling.
    """
    try:
        data = binascii.a2b_base64(text.encode("ascii").translate(_FROM_URL) + b"=" * (-len(text) % 4))
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("not base64url") from error
    # The decoder skips what it does not know. Such a text differs from the one spelling of what was decoded.
    if encode(data) != text:
        raise ValueError("not base64url")
    return data
