"""Everything that can be wrong with an Audience."""

import contextlib
from collections.abc import AsyncIterator

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server import sockets
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.outside.misbehaving_server import Behaviour, answer, dripping, endless, misbehaving_server, raw, silent
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core

PROBLEM = "application/problem+json"
_LARGE = b'{"data": "' + b"x" * (9 * 1024 * 1024) + b'"}'

# None means that nothing listens there.
FAULTS: dict[str, Behaviour | None] = {
    "down": None,
    "slow": silent,
    "dripping": dripping,
    "endless": endless,
    "an error": answer(b'{"code": "internal_error"}', status="500 Internal Server Error", media_type=PROBLEM),
    "its database gone": answer(b'{"code": "database_unavailable"}', status="503 No", media_type=PROBLEM),
    "our credential unknown": answer(b'{"code": "unauthenticated"}', status="401 No", media_type=PROBLEM),
    "a problem under another status": answer(b'{"code": "integration_not_found"}', status="200 OK", media_type=PROBLEM),
    "a problem nobody declared": answer(b'{"code": "code_not_found"}', status="404 No", media_type=PROBLEM),
    "no problem document": answer(b"Not Found", status="404 Not Found", media_type="text/plain"),
    "no JSON": answer(b"<h1>It works</h1>", media_type="text/html"),
    "broken JSON": answer(b'{"data": ['),
    "an array": answer(b"[]"),
    "an empty object": answer(b"{}"),
    "nothing": answer(b"", status="204 No Content"),
    "elsewhere": raw(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n"),
    "9 MiB": answer(_LARGE),
    "half an answer": raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"),
    "no HTTP": raw(b"220 mail.example.org ESMTP\r\n"),
}
# One without an answer and one with it. The channel turns every fault into one problem, so most tests need no more.
KINDS = ["down", "broken JSON"]


@contextlib.asynccontextmanager
async def failing_audience(fault: str) -> AsyncIterator[str]:
    """Yield the URL of an Audience with this fault."""
    behaviour = FAULTS[fault]
    if behaviour is None:
        with sockets.reserve_port("127.0.0.1", 0) as sock:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    else:
        async with misbehaving_server(behaviour) as server:
            yield server.url


@contextlib.asynccontextmanager
async def core_beside(audience_url: str, database_url: Secret, clock: FakeClock) -> AsyncIterator[Api]:
    """Run a Core that waits one second for the Audience at this URL."""
    settings = core_settings(database_url, audience_url=audience_url, private_timeout_s="1")
    async with running_core(settings, clock) as api:
        yield api
