"""The door of a private component: nobody but a holder of its credential comes in."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from soundmark.kit.http import AsgiApp, Receive, Scope, Send
from soundmark.kit.problems import Unauthenticated
from soundmark.kit.secret import Secret

_OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})


@dataclass(frozen=True, slots=True)
class Guard:
    """An ASGI app that lets nobody but a holder of a credential reach `app`; only health is open.

    It stands before routing, so that a stranger learns nothing of which paths exist, and before the body is read.
    """

    app: AsgiApp
    credentials: tuple[Secret, ...]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "http"
            and scope["path"] not in _OPEN_PATHS
            and not holds_credential(scope, self.credentials)
        ):
            raise Unauthenticated
        await self.app(scope, receive, send)


def holds_credential(scope: Scope, credentials: Iterable[Secret]) -> bool:
    """Return whether a request carries one of `credentials`."""
    header = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    if header is None:
        return False
    scheme, _, candidate = header.decode("latin-1").partition(" ")
    # Both credentials of a pair are compared, whichever fits: the time taken tells nothing.
    matches_count = sum(credential.equals(candidate) for credential in credentials)
    return scheme.lower() == "bearer" and matches_count > 0
