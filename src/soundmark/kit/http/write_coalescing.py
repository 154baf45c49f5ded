"""A transport that sends what was written in one turn of the event loop in one piece."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

_GATHERED_MAX_BYTES: Final = 64 * 1024  # What asyncio's transports buffer before they ask the writer to wait.

Writable = bytes | bytearray | memoryview


class GatheringTransport(asyncio.Transport):
    """In front of a socket's transport.

    A server writes the head of an answer and its body apart. Sent apart, each is a system call and a packet, and the
    reader is woken for half an answer: a third of what resolving costs (bench/RESULTS.md). Nothing waits for longer
    than the turn of the loop in which it was written.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport: Final = transport
        self._loop: Final = loop
        self._gathered: list[Writable] = []
        self._gathered_bytes = 0
        self.written_bytes = 0  # Since the connection was made, whether sent or not.

    def write(self, data: Writable) -> None:
        """Send `data` when this turn ends, or with what makes it more than 64 KiB."""
        if not self._gathered:
            self._loop.call_soon(self._send)
        self._gathered.append(data)
        self._gathered_bytes += len(data)
        self.written_bytes += len(data)
        if self._gathered_bytes > _GATHERED_MAX_BYTES:
            self._send()

    def write_whole(self, data: bytes) -> None:
        """Send `data`, which nothing of the same turn will follow, without waiting for the turn's end."""
        if self._gathered or self._transport.is_closing():
            self.write(data)
        else:
            self.written_bytes += len(data)
            self._transport.write(data)

    def writelines(self, list_of_data: Iterable[Writable]) -> None:
        """Send all of it, as `write` does."""
        for data in list_of_data:
            self.write(data)

    def close(self) -> None:
        """Send what was written, then end the connection."""
        self._send()
        self._transport.close()

    def abort(self) -> None:
        """End the connection and drop what was not sent."""
        self._gathered.clear()
        self._gathered_bytes = 0
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes were written and are not with the kernel yet."""
        return self._gathered_bytes + self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        """Whether the connection ends."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Take nothing from the socket until `resume_reading`."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on taking from the socket."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the socket's transport knows of its peer."""
        return self._transport.get_extra_info(name, default)

    def _send(self) -> None:
        if self._gathered:
            parts, is_large = self._gathered, self._gathered_bytes > _GATHERED_MAX_BYTES
            self._gathered = []
            self._gathered_bytes = 0
            # The peer may have gone in this very turn, and uvloop's transport raises once it is closed.
            if self._transport.is_closing():
                return
            if is_large:
                # Not joined: a document that many peers leave unread is in memory once.
                self._transport.writelines(parts)
            else:
                self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))
