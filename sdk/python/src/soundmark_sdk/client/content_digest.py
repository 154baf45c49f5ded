"""Compare a body with the digest that its headers state."""

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Final

from soundmark_sdk.client.failures import AnswerMalformed

_SHA_256: Final = re.compile(r"(?:^|,)[ \t]*sha-256=:([A-Za-z0-9+/]{43}=):[ \t]*(?:,|$)")


class ContentDigest:
    """The running SHA-256 of a body."""

    def __init__(self) -> None:
        self._sha256: Final = hashlib.sha256()

    def update(self, chunk: bytes) -> None:
        """Add the next piece of the body."""
        self._sha256.update(chunk)

    def compare(self, headers: Mapping[str, str]) -> None:
        """Accept only the body that the headers state. The transport has compared its length already.

        Raises: AnswerMalformed.
        Source: RFC 9530, section 2; wire contract, section 8.
        """
        stated = _SHA_256.search(headers.get("content-digest", ""))
        if stated is None:
            raise AnswerMalformed("The service's answer does not state its digest.")
        if base64.b64decode(stated[1]) != self._sha256.digest():
            raise AnswerMalformed("The service's answer was damaged on the way: it does not have the stated digest.")
