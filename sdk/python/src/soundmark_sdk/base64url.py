"""Base64url without padding, in its one canonical spelling."""

import base64
import binascii

from soundmark_sdk.failures import Unverifiable


def encode(data: bytes) -> str:
    """Return the unpadded base64url text of some bytes.

    Source: RFC 4648, section 5.
    """
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes:
    """Return the bytes of a base64url text in its canonical spelling.

    A lenient decoder reads several texts as the same bytes (padding, stray characters, spare bits in the last
    character). Only the text that `encode` writes is accepted, so that no altered answer passes for the original.

    Raises: Unverifiable.
    Source: RFC 4648, section 3.5.
    """
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise Unverifiable("A base64url text is malformed.") from None
    if encode(data) != text:
        raise Unverifiable("A base64url text is not in its canonical spelling.")
    return data
