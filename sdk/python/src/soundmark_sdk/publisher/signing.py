"""Sign events with the HMAC secret of an integration."""

import hashlib
import hmac
import re
from typing import Final

_SECRET: Final = re.compile(r"xhm_[A-Za-z0-9_-]{43}")


def sign(body: bytes, hmac_secret: str) -> str:
    """Return the `X-Svc-Signature` of these bytes. The key is the whole text of the secret, with its prefix.

    Raises: ValueError for a text that is not a secret.
    Source: wire contract, section 6.
    """
    check_secret(hmac_secret)
    return "sha256=" + hmac.new(hmac_secret.encode("ascii"), body, hashlib.sha256).hexdigest()


def check_secret(hmac_secret: str) -> None:
    """Accept only a text that can be an HMAC secret.

    Raises: ValueError, without the text.
    """
    if _SECRET.fullmatch(hmac_secret) is None:
        raise ValueError("An HMAC secret is xhm_ and 43 characters.")
