"""The cookies of a request: those of this console, and of them only what it could have written."""

from typing import Final

from soundmark.kit.http.asgi import AsgiApp, Receive, Scope, Send

# Browsers keep some 180 cookies of one host, and other services of this host have theirs too.
_COOKIES_MAX: Final = 200


class OwnCookies:
    """An app whose requests carry the cookies with this prefix alone.

    The console writes no value that needs quotes. So a quoted one, which takes long to decode, is not ours, and each
    cookie has one spelling.
    """

    def __init__(self, app: AsgiApp, prefix: str) -> None:
        self._app: Final = app
        self._prefix: Final = prefix.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = b";".join(value for name, value in scope["headers"] if name == b"cookie")
            if given:
                headers = [header for header in scope["headers"] if header[0] != b"cookie"]
                if own := self._find_own(given):
                    headers.append((b"cookie", own))
                scope = {**scope, "headers": headers}
        await self._app(scope, receive, send)

    def _find_own(self, given: bytes) -> bytes:
        """Return the cookies of ours; none if there are more than any browser sends."""
        if given.count(b";") >= _COOKIES_MAX:
            return b""
        cookies = [cookie.strip() for cookie in given.split(b";")]
        return b"; ".join(cookie for cookie in cookies if cookie.startswith(self._prefix) and b'"' not in cookie)
