"""The keys under which support tickets are opened and replied to."""

import re
import secrets
from typing import Final

_KEY_BYTES: Final = 32  # 256 random bits, 43 URL-safe characters.
_KEY: Final = re.compile(r"supreq_[A-Za-z0-9_-]{16,64}")


def choose_request_id(request_id: str | None = None) -> str:
    """Return the key of a request to open a support ticket or to reply to one, a new one unless it is given.

    Raises: ValueError for a malformed key.
    """
    if request_id is None:
        return f"supreq_{secrets.token_urlsafe(_KEY_BYTES)}"
    if _KEY.fullmatch(request_id) is None:
        raise ValueError("A request id is 'supreq_' and 16 to 64 of A-Z, a-z, 0-9, '_' and '-'.")
    return request_id
