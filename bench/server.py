"""Core in one process, with references beside it on the same server: a constant answer, the naive route, and what a
card webhook cannot do without.

Run as `python -m bench.server PORT`, configured by the environment like Core itself. `/constant/N` answers N bytes.
With `BENCH_OPEN` in the environment every caller is the API key of the seeded project, and credentials are not
checked. With `plain` after the port, uvicorn serves without the additions of `kit.http.server.serve`.
"""

import os
import sys
from functools import cache
from typing import Any, Final

import uvicorn

import soundmark
from bench import seed, unchained, unlogged, unsuspended, webhook_reference
from bench.naive import naive_app
from soundmark import settings as declared
from soundmark.core import app as core_app
from soundmark.core.app import create_app
from soundmark.core.domain.tenancy.scope import ServerKey
from soundmark.kit import log
from soundmark.kit.http.asgi import AsgiApp
from soundmark.kit.http.server.serve import Listen, run
from soundmark.kit.tracing.switch import recording_spans

CONSTANT: Final = "/constant/"


class _Open:
    """Replaces `Credentials`: every caller is the API key, without a check."""

    def __init__(self, *_: object, **__: object) -> None:
        self._key: Final = ServerKey(
            seed.API_KEY_ID, seed.ORGANIZATION_ID, seed.PROJECT_ID, frozenset({"codes:read"}), b""
        )

    async def caller_of(self, *_: object) -> ServerKey:
        return self._key


def main() -> None:
    """Serve until SIGTERM."""
    if "BENCH_OPEN" in os.environ:
        core_app.Credentials = _Open  # type: ignore[attr-defined,assignment]  # only here, to measure what judging costs
    settings = declared.read(declared.CoreSettings, os.environ)
    log.configure(level="warning", log_format="text", component="bench")
    if os.environ.get(unchained.SETTING):
        unchained.install()
    if os.environ.get(unlogged.SETTING):
        unlogged.install()
    if os.environ.get(unsuspended.SETTING):
        unsuspended.install()
    with recording_spans("bench", soundmark.__version__, os.environ):
        app = _app(settings)
        if sys.argv[2:] == ["plain"]:
            uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", log_config=None, access_log=False)
        else:
            run(app, Listen("127.0.0.1", int(sys.argv[1])))


def _app(settings: declared.CoreSettings) -> AsgiApp:
    """Return Core with the references beside it, each made when it is first asked, since it takes memory."""
    core = create_app(settings)
    made: dict[str, Any] = {}
    naive = cache(lambda: naive_app(settings))
    reference = cache(lambda: webhook_reference.WebhookReference(settings))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await core(scope, receive, send)
        elif scope["path"].startswith(CONSTANT):
            if scope["path"] not in made:
                made[scope["path"]] = constant(int(scope["path"].removeprefix(CONSTANT)))
            for message in made[scope["path"]]:
                await send(message)
        elif scope["path"] == webhook_reference.PATH:
            await reference()(scope, receive, send)
        elif scope["path"].startswith("/naive/"):
            await naive()(scope, receive, send)
        else:
            await core(scope, receive, send)

    return app


def constant(size: int) -> list[dict[str, Any]]:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % size)]
    return [
        {"type": "http.response.start", "status": 200, "headers": headers},
        {"type": "http.response.body", "body": b"x" * size},
    ]


if __name__ == "__main__":
    main()
