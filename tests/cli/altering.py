"""A dishonest service between the command and Core."""

from collections.abc import Callable
from typing import Any

from soundmark.kit.http.asgi import AsgiApp, Message, Receive, Scope, Send


def altering(
    app: AsgiApp, path: str, *, answer: Callable[[bytes], bytes] = bytes, question: Callable[[bytes], bytes] = bytes
) -> AsgiApp:
    """Return `app` with altered bodies of the requests and responses below `path`."""

    async def between(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or path not in scope["path"]:
            await app(scope, receive, send)
            return
        held: list[Message] = []

        async def read() -> Message:
            message: Any = await receive()
            return {**message, "body": question(message.get("body", b""))}

        async def write(message: Message) -> None:
            held.append(message)

        fixed = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
        await app({**scope, "headers": fixed}, read, write)
        body = answer(b"".join(message.get("body", b"") for message in held[1:]))
        headers = [(name, value) for name, value in held[0]["headers"] if name.lower() != b"content-length"]
        await send({**held[0], "headers": [*headers, (b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})

    return between
