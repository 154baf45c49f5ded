"""The reader of access tokens, with a long or a short deadline."""

import contextlib
from collections.abc import AsyncIterator, Iterator

from soundmark.core.access.oidc import OidcAccess
from soundmark.kit.http.responses.problems import Unauthenticated
from support.identity.oidc_issuer import CLIENT_ID, OidcIssuer
from support.processes.fake_clock import FakeClock

PATIENCE_S, IMPATIENCE_S = 30, 0.3
FRESH_S, AGAIN_S = 180, 10


@contextlib.asynccontextmanager
async def reading_tokens_of(issuer: OidcIssuer, clock: FakeClock) -> AsyncIterator[OidcAccess]:
    access = OidcAccess(issuer.url, CLIENT_ID, clock, timeout_s=PATIENCE_S)
    try:
        yield access
    finally:
        await access.aclose()


@contextlib.contextmanager
def impatient(access: OidcAccess) -> Iterator[None]:
    """Shorten the deadline for an issuer that never answers; a good one on a busy machine needs the long one."""
    access._keys._timeout_s = IMPATIENCE_S  # type: ignore[misc]  # final everywhere else  # a fault is injected
    yield
    access._keys._timeout_s = PATIENCE_S  # type: ignore[misc]  # final everywhere else


async def is_accepted(access: OidcAccess, token: str) -> bool:
    try:
        await access.user_of(token)
    except Unauthenticated:
        return False
    return True
