"""Core in one process, with two references beside it on the same server: a constant answer and the naive route.

Run as `python -m bench.server PORT CONSTANT_BYTES`, configured by the environment like Core itself.
"""

import os
import sys
from typing import Any

from bench.naive import naive_app
from soundmark import settings as declared
from soundmark.core.app import create_app
from soundmark.kit import log
from soundmark.kit.serve import Listen, run

_START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json")],
}


def main() -> None:
    settings = declared.read(declared.CoreSettings, os.environ)
    log.configure(level="warning", log_format="text", component="bench")
    core, naive = create_app(settings), naive_app(settings)
    body = b"x" * int(sys.argv[2])
    start = {**_START, "headers": [*_START["headers"], (b"content-length", str(len(body)).encode())]}
    answer = {"type": "http.response.body", "body": body}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/constant":
            await send(start)
            await send(answer)
        elif scope["type"] == "http" and scope["path"].startswith("/naive/"):
            await naive(scope, receive, send)
        else:
            await core(scope, receive, send)

    run(app, Listen("127.0.0.1", int(sys.argv[1])))


if __name__ == "__main__":
    main()
