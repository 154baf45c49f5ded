"""A transport that sends everything written in one turn of the event loop in one piece."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

_GATHERED_MAX_BYTES: Final = 64 * 1024  # What asyncio's transports buffer before they ask the writer to wait.

Writable = bytes | bytearray | memoryview


class GatheringTransport(asyncio.Transport):
    """A transport in front of a socket's transport.

    A server writes the head and the body of a response separately. Sent separately, each would need a system call and a
    packet, and would wake the reader: a third of the cost of resolving (bench/MEASURED.md). Nothing waits longer than
    the turn of the loop in which it was written.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport: Final = transport
        self._loop: Final = loop
        self._gathered: list[Writable] = []
        self._gathered_bytes = 0
        self.written_bytes = 0  # Since the connection was made, whether sent or not.

    def write(self, data: Writable) -> None:
        """Send `data` when this turn ends, or as soon as more than 64 KiB are waiting."""
        if not self._gathered:
            self._loop.call_soon(self._send)
        self._gathered.append(data)
        self._gathered_bytes += len(data)
        self.written_bytes += len(data)
        if self._gathered_bytes > _GATHERED_MAX_BYTES:
            self._send()

    def write_whole(self, data: bytes) -> None:
        """Send `data` without waiting for the end of the turn, because nothing will follow it in the same turn."""
        if self._gathered or self._transport.is_closing():
            self.write(data)
        else:
            self.written_bytes += len(data)
            self._transport.write(data)

    def writelines(self, list_of_data: Iterable[Writable]) -> None:
        """Send all of the data, as `write` does."""
        for data in list_of_data:
            self.write(data)

    def close(self) -> None:
        """Send the waiting data, then end the connection."""
        self._send()
        self._transport.close()

    def abort(self) -> None:
        """End the connection and drop unsent data."""
        self._gathered.clear()
        self._gathered_bytes = 0
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        """Return how many written bytes have not been passed to the kernel yet."""
        return self._gathered_bytes + self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        """Return whether the connection is closing."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Stop reading from the socket until `resume_reading`."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Continue reading from the socket."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information from the socket's transport, such as the peer's address."""
        return self._transport.get_extra_info(name, default)

    def _send(self) -> None:
        if self._gathered:
            parts, is_large = self._gathered, self._gathered_bytes > _GATHERED_MAX_BYTES
            self._gathered = []
            self._gathered_bytes = 0
            # The peer may have left in this very turn, and a closed transport of uvloop's raises.
            if self._transport.is_closing():
                return
            if is_large:
                # Not joined, so that a document that many peers leave unread is in memory only once.
                self._transport.writelines(parts)
            else:
                self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))
