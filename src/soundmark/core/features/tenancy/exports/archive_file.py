"""The temporary file of an archive, with a running digest and a limit on its size."""

import errno
import hashlib
import tempfile
from collections.abc import Sequence
from typing import IO, Final

import structlog

from soundmark.kit.http.responses.problems import InternalError, Problem

_log: Final = structlog.get_logger()


class ArchiveFile:
    """An anonymous temporary file that is written once, from its beginning to its end.

    It has no name, so nothing of it is left when it is closed or the process dies. Writing waits for the disk, so pages
    of records are written in a thread.
    """

    def __init__(self, bytes_max: int, too_large: type[Problem]) -> None:
        self._bytes_max: Final = bytes_max
        self._too_large: Final = too_large
        self._size_bytes = 0
        self._sha256: Final = hashlib.sha256()
        try:
            # Unbuffered: everything comes in large pieces, and closing the file of a full disk has nothing to write.
            self.content: Final[IO[bytes]] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by the response
        except OSError as error:
            raise _report_unwritable(error) from None

    def write(self, data: bytes) -> None:
        """Append `data`.

        Raises: the problem of an archive that is too large; InternalError if the disk does not take it.
        """
        self._size_bytes += len(data)
        if self._size_bytes > self._bytes_max:
            raise self._too_large(f"The archive would be larger than {self._bytes_max:,} bytes.")
        self._sha256.update(data)
        left = memoryview(data)
        try:
            while left:
                left = left[self.content.write(left) :]
        except OSError as error:
            raise _report_unwritable(error) from None

    def digest(self) -> bytes:
        """Return the SHA-256 digest of everything written so far."""
        return self._sha256.digest()

    def close(self) -> None:
        """Close the file, which deletes it."""
        self.content.close()


class ArchiveWriter:
    """A writer of the members of one archive, which counts the records of its lists. It does not write the seal."""

    def __init__(self, file: ArchiveFile) -> None:
        self._file: Final = file
        self.counts: Final[dict[str, int]] = {}

    def begin(self, members: bytes) -> None:
        """Write the first members: a JSON object, whose closing brace is left out."""
        self._file.write(members.removesuffix(b"}"))

    def write_member(self, name: str, value: bytes) -> None:
        """Write one member."""
        self._file.write(b',"%b":%b' % (name.encode(), value))

    def open_list(self, name: str) -> None:
        """Begin a list of records."""
        self.counts[name] = 0
        self._file.write(b',"%b":[' % name.encode())

    def add(self, name: str, records: Sequence[bytes]) -> None:
        """Write records, each on a line of its own, to the open list."""
        if records:
            self._file.write((b",\n" if self.counts[name] else b"\n") + b",\n".join(records))
            self.counts[name] += len(records)

    def close_list(self, name: str) -> None:
        """End the open list."""
        self._file.write(b"\n]" if self.counts[name] else b"]")


def _report_unwritable(error: OSError) -> InternalError:
    """Log why the disk did not take an archive, and return the problem to raise."""
    reason = errno.errorcode.get(error.errno or 0, "unknown")
    _log.error("archive_not_written", reason=reason, folder=tempfile.gettempdir())
    return InternalError("The server has no disk space for the archive. Contact its operator and quote the request id.")
