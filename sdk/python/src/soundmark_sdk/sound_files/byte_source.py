"""Random access to the bytes of a file, and files that are put together from pieces of another."""

import io
import os
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import BinaryIO, Final

_SEARCHED_FIRST: Final = 1 << 10
_SEARCHED_AT_ONCE: Final = 1 << 20
# No signature that we search for is longer.
_MATCH_BYTES_MAX: Final = 64


class ByteSource:
    """The bytes of an open file, from its position to its end."""

    def __init__(self, file: BinaryIO) -> None:
        """Raises: OSError for a file without positions."""
        self._file: Final = file
        self._base: Final = file.tell()
        self.size: Final = max(0, file.seek(0, os.SEEK_END) - self._base)

    def read(self, at: int, count: int) -> bytes:
        """Return up to `count` bytes from a place, fewer only at the end."""
        self._file.seek(self._base + at)
        return self._file.read(max(0, min(count, self.size - at)))

    def search(self, pattern: re.Pattern[bytes], at: int, end: int | None = None) -> Iterator[int]:
        """Yield the places at which a pattern matches, in order; a match has 64 bytes at most."""
        end = self.size if end is None else min(end, self.size)
        # Many matches are near.
        count = _SEARCHED_FIRST
        while at < end:
            count = min(count, end - at)
            for match in pattern.finditer(self.read(at, count + _MATCH_BYTES_MAX)):
                if match.start() < count:
                    yield at + match.start()
            at += count
            count = min(4 * count, _SEARCHED_AT_ONCE)


class ByteView(io.RawIOBase):
    """A file that is read only: a header of its own, and then pieces of a source.

    Another header may replace `header` if it has the same length.
    """

    def __init__(self, source: ByteSource, header: bytes = b"") -> None:
        super().__init__()
        self._source: Final = source
        self.header = header
        # A day of Ogg may have a million pieces. For each: where it begins in the view, and where in the source.
        self._starts: Final = array("Q")
        self._places: Final = array("Q")
        self._size = len(header)
        self._at = 0

    def append(self, at: int, count: int) -> None:
        """Add bytes of the source to the end."""
        if count <= 0:
            return
        if not self._starts or self._places[-1] + self._size - self._starts[-1] != at:
            self._starts.append(self._size)
            self._places.append(at)
        self._size += count

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: object) -> int:
        """Fill a buffer, fewer bytes only at the end: libsndfile takes a short read for the end of the file."""
        target = memoryview(buffer).cast("B")  # type: ignore[arg-type]  # typeshed names the protocol only since 3.12
        filled = 0
        while filled < len(target) and (piece := self._read_piece(len(target) - filled)):
            target[filled : filled + len(piece)] = piece
            filled += len(piece)
            self._at += len(piece)
        return filled

    def _read_piece(self, count: int) -> bytes:
        """Return bytes of the piece at the position, or none at the end."""
        if self._at < len(self.header):
            return self.header[self._at : self._at + count]
        if self._at >= self._size:
            return b""
        index = bisect_right(self._starts, self._at) - 1
        end = self._starts[index + 1] if index + 1 < len(self._starts) else self._size
        return self._source.read(self._places[index] + self._at - self._starts[index], min(count, end - self._at))
