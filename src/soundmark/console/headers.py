"""The security headers of every answer."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders

from soundmark.kit.http.asgi import AsgiApp, Message, Receive, Scope, Send


def make_policy(connect_to: Sequence[str]) -> str:
    """Return the Content-Security-Policy: nothing but our own files, and connections to these URLs' origins.

    Browsers apply `form-action` to redirects as well, so no form leads to another origin by itself.
    """
    connect = " ".join(["'self'", *sorted({_origin_of(url) for url in connect_to})])
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
        f"connect-src {connect}; worker-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


def _origin_of(url: str) -> str:
    """Return the origin of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


# No browser shows them as a page, so that the policies of pages say nothing about them; and a page loads dozens.
_FILES: Final = ("text/css", "text/javascript")


class SecureHeaders:
    """An app whose answers all have the security headers."""

    def __init__(self, app: AsgiApp, policy: str, *, is_secure: bool) -> None:
        self._app: Final = app
        self._of_files: Final = {
            "x-content-type-options": "nosniff",
            **({"strict-transport-security": "max-age=31536000"} if is_secure else {}),
        }
        self._of_pages: Final = {
            **self._of_files,
            "content-security-policy": policy,
            "referrer-policy": "same-origin",
            "cross-origin-opener-policy": "same-origin",
            "permissions-policy": "microphone=(self), camera=(), geolocation=(), payment=()",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                is_file = headers.get("content-type", "").startswith(_FILES)
                for name, value in (self._of_files if is_file else self._of_pages).items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)
