"""Base64url without padding (RFC 4648 section 5), strict in both directions."""

import base64
import binascii


def encode(data: bytes) -> str:
    """`data` in `A-Za-z0-9_-`, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes:
    """The bytes that `encode` would have turned into exactly this text.

    Raises: ValueError for foreign characters, padding, and for set bits beyond the last byte, so that one value has
        one spelling only.
    """
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("not base64url") from error
    if encode(data) != text:
        raise ValueError("not base64url")
    return data
