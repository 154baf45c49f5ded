"""Bearer credentials, and authentication at a private component: the credential, the caller's name and its deadline."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.deadline import enforce_deadline
from soundmark.kit.http.asgi import AsgiApp, Receive, Scope, Send
from soundmark.kit.http.requests.private_headers import read_caller, read_timeout_s
from soundmark.kit.http.responses.problems import Unauthenticated

# Contract, section 2: the scheme in any case, one or more blanks, white space at the end ignored.
_BEARER: Final = re.compile(rb"bearer ++(.+)", re.IGNORECASE | re.DOTALL)
_OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})


@dataclass(frozen=True, slots=True)
class Guard:
    """An ASGI app that passes only requests with a credential to `app`, each until its deadline; health is open.

    It works before routing, so that a stranger cannot learn which paths exist, and before the body is read.
    """

    app: AsgiApp
    credentials: tuple[Secret, ...]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _OPEN_PATHS:
            await self.app(scope, receive, send)
            return
        if not holds_credential(scope, self.credentials):
            raise Unauthenticated
        scope.setdefault("state", {})["caller_name"] = read_caller(scope["headers"])
        async with enforce_deadline(read_timeout_s(scope["headers"])):
            await self.app(scope, receive, send)


def read_bearer(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the bearer credential of a request; None without one, or with several `Authorization` headers."""
    given = [value for name, value in headers if name == b"authorization"]
    match = _BEARER.fullmatch(given[0].rstrip(b" \t")) if len(given) == 1 else None
    return None if match is None else match[1].decode("latin-1")


def holds_credential(scope: Scope, credentials: Iterable[Secret]) -> bool:
    """Return whether a request carries one of `credentials`."""
    candidate = read_bearer(scope["headers"])
    if candidate is None:
        return False
    # Both credentials of a pair are always compared, so that the time reveals nothing.
    return sum(credential.equals(candidate) for credential in credentials) > 0


def describe_caller(scope: Scope) -> dict[str, str]:
    """Return what the log says about the process that sent a request with a credential."""
    name: str | None = scope.get("state", {}).get("caller_name")
    return {} if name is None else {"caller": name}
