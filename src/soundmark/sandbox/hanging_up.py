"""Connections that end without an answer, as those of a server that dies."""

from typing import Any, Final

from soundmark.kit.http.asgi import Send
from soundmark.kit.http.server.connection import Connection
from soundmark.kit.http.server.response_cycle import ResponseCycle

# An ASGI message of our own: end the connection without a further byte.
_HANG_UP: Final = "soundmark.hang_up"


async def hang_up(send: Send) -> None:
    """End the connection of this request without a further byte."""
    await send({"type": _HANG_UP})


class HangingUpCycle(ResponseCycle):
    """A cycle that can end its connection in the middle of a response, or instead of one."""

    async def send(self, message: Any) -> None:
        if message["type"] != _HANG_UP:
            await super().send(message)
            return
        self.response_started = self.response_complete = True
        self.transport.close()


class HangingUpConnection(Connection):
    """A connection on which an app can hang up."""

    cycle_class = HangingUpCycle
