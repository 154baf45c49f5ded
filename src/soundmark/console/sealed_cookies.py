"""Cookies whose values only the console can read or make: sealed, and divided where one cookie would be too large."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.responses import Response

from soundmark.kit.crypto.sealing import SealBroken, Sealer
from soundmark.kit.text import base64url

# A browser keeps at least 4,096 bytes of a cookie, with its name and attributes (RFC 6265, section 6.1).
_CHUNK_CHARS_MAX: Final = 3_700
# A request head is at most 64 KiB, and all cookies of the console share it.
_CHUNKS_MAX: Final = 8
_PLACE: Final = "cookie"


class CookieTooLarge(Exception):
    """The value does not fit into the cookies that a request may carry."""


@dataclass(frozen=True, slots=True)
class CookieJar:
    """The console's cookies. `prefix` keeps those of other ports of this host apart: cookies ignore ports."""

    sealer: Sealer
    prefix: str
    is_secure: bool

    def read(self, name: str, cookies: Mapping[str, str]) -> Any:
        """Return the value of a cookie, or None if it is absent, incomplete, altered or sealed under another key.

        A value has one spelling: the one in which it was written, with no part beside the counted ones.
        """
        first = cookies.get(self._name(name, 0), "")
        count_text, _, chunk = first.partition(".")
        if count_text not in _COUNTS:
            return None
        count = int(count_text)
        chunks = [chunk, *(cookies.get(self._name(name, number), "") for number in range(1, count))]
        *full, last = map(len, chunks)
        if any(size != _CHUNK_CHARS_MAX for size in full) or not 0 < last <= _CHUNK_CHARS_MAX:
            return None
        if any(self._name(name, number) in cookies for number in range(count, _CHUNKS_MAX)):
            return None
        try:
            envelope = base64url.decode("".join(chunks))
            return msgspec.json.decode(self.sealer.unseal(envelope, table=_PLACE, column=name, row=self.prefix))
        except (ValueError, SealBroken):
            return None

    def write(
        self,
        response: Response,
        name: str,
        value: Any,
        *,
        replacing: Mapping[str, str] | None = None,
        max_age_s: int | None = None,
    ) -> None:
        """Seal a value that JSON can express, and remove what is left of a larger one from the cookies `replacing`.

        Without `max_age_s` it lasts until the browser ends.

        Raises: CookieTooLarge.
        """
        envelope = self.sealer.seal(msgspec.json.encode(value), table=_PLACE, column=name, row=self.prefix)
        text = base64url.encode(envelope)
        chunks = [text[start : start + _CHUNK_CHARS_MAX] for start in range(0, len(text), _CHUNK_CHARS_MAX)]
        if len(chunks) > _CHUNKS_MAX:
            raise CookieTooLarge
        chunks[0] = f"{len(chunks)}.{chunks[0]}"
        for number, chunk in enumerate(chunks):
            self._set(response, self._name(name, number), chunk, max_age_s)
        self.clear(response, name, replacing or {}, beyond=len(chunks))

    def clear(self, response: Response, name: str, cookies: Mapping[str, str], *, beyond: int = 0) -> None:
        """Remove a cookie with all its parts that the browser sent, except for the first `beyond`."""
        for number in range(beyond, _CHUNKS_MAX):
            part = self._name(name, number)
            if part in cookies:
                self._set(response, part, "", 0)

    def _name(self, name: str, number: int) -> str:
        return f"{self.prefix}{name}" + (f".{number}" if number else "")

    def _set(self, response: Response, name: str, value: str, max_age_s: int | None) -> None:
        response.set_cookie(
            name, value, max_age=max_age_s, path="/", secure=self.is_secure, httponly=True, samesite="lax"
        )


_COUNTS: Final = frozenset(str(count) for count in range(1, _CHUNKS_MAX + 1))
