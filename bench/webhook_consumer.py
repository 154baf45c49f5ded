"""A consumer of webhooks on loopback that does as little as possible: `python -m bench.webhook_consumer PORT`.

`POST` is counted and answered 204. `GET` answers how many there were, and when the first and the last came.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

import httptools
import uvloop

_TAKEN: Final = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass
class Seen:
    """How many messages came, and when the first and the last of them."""

    count: int = 0
    first_at: float = 0
    last_at: float = 0


_seen: Final = Seen()


class Consumer(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to parse."""
        self._transport: Any = transport  # uvloop's own class.
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Answer a request."""
        if self._parser.get_method() == b"GET":
            body = json.dumps(asdict(_seen)).encode()
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            return
        _seen.last_at = time.time()
        _seen.first_at = _seen.first_at or _seen.last_at
        _seen.count += 1
        self._transport.write(_TAKEN)


async def main(port: int) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Consumer, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1])))
