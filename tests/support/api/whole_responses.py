"""A server that takes a response as one message, with its head as bytes, as our own does."""

from typing import Any

from soundmark.kit.http.asgi import AsgiApp, Receive, Scope, Send
from soundmark.kit.http.responses.plain_response import WHOLE_RESPONSE


class WholeResponses:
    """An ASGI app that has `app` answer with whole responses and divides them; it keeps their statuses."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self.statuses: list[int] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def divide(message: Any) -> None:
            assert message["type"] == WHOLE_RESPONSE
            self.statuses.append(message["status"])
            head, end = message["head"].rsplit(b"\r\n", 1)
            headers = [tuple(line.split(b": ", 1)) for line in head.split(b"\r\n")]
            assert end == b"", "the server adds the empty line"
            await send({"type": "http.response.start", "status": message["status"], "headers": headers})
            await send({"type": "http.response.body", "body": message["body"]})

        await self._app({**scope, "extensions": {WHOLE_RESPONSE: {}}}, receive, divide)
