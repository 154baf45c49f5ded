"""Audience in one process, with two references beside it on the same server: a constant answer and the naive route.

Run as `python -m bench.audience_server PORT`, configured by the environment like Audience itself. `/constant/N` answers
N bytes; `/naive` takes the same events, and commits each by itself.
"""

import os
import sys
from typing import Any, Final

from bench.one_by_one import OneByOne
from bench.server import CONSTANT, constant
from soundmark import settings as declared
from soundmark.audience.app import create_app
from soundmark.kit import log
from soundmark.kit.http.server.serve import Listen, run

NAIVE: Final = "/naive"


def main() -> None:
    """Serve until SIGTERM."""
    settings = declared.read(declared.AudienceSettings, os.environ)
    log.configure(level="warning", log_format="text", component="bench")
    audience, naive = create_app(settings), OneByOne(settings)
    made: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await audience(scope, receive, send)
        elif scope["path"].startswith(CONSTANT):
            if scope["path"] not in made:
                made[scope["path"]] = constant(int(scope["path"].removeprefix(CONSTANT)))
            for message in made[scope["path"]]:
                await send(message)
        elif scope["path"] == NAIVE:
            await naive(scope, receive, send)
        else:
            await audience(scope, receive, send)

    run(app, Listen("127.0.0.1", int(sys.argv[1])))


if __name__ == "__main__":
    main()
