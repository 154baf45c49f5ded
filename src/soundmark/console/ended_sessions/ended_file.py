"""The ended sessions in a file that the console's processes on one machine share."""

import contextlib
import errno
import fcntl
import os
import struct
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from soundmark.console.ended_sessions.ended_list import DIGEST_BYTES, SESSIONS_MAX, EndedList, EndedSession
from soundmark.operating_system.files import flush_directory, require_trusted_folder

_NAME: Final = "ended-sessions"
_RECORD: Final = struct.Struct(f"!{DIGEST_BYTES}sd")
# Twice what a full list needs, so that it is not written anew for every session.
_BYTES_MAX: Final = 2 * SESSIONS_MAX * _RECORD.size


class EndedFile:
    """A file of records that are only ever appended, each with one write and flushed to the disk.

    A file that is too long is replaced by a shorter one with the same meaning. Whoever writes holds a lock on the file,
    and readers need none: they read on where they stopped, or from the start of a file that is new to them. A process
    that dies while it writes leaves a part of a record, which nobody reads and the next writer removes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        self._path: Final = folder / _NAME
        # Kept open, so that the number of its inode cannot be that of a newer file.
        self._handle: int | None = None
        self._offset = 0

    def read_new(self) -> list[EndedSession]:
        """Return the records that were added since the last call.

        Raises: OSError.
        """
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return []
        if self._handle is None or not _is_same(os.fstat(self._handle), found):
            self.close()
            self._handle, self._offset = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), 0
        unread_bytes = found.st_size - self._offset
        if unread_bytes < _RECORD.size:
            return []
        records = _unpack(os.pread(self._handle, unread_bytes, self._offset))
        self._offset += len(records) * _RECORD.size
        return records

    def append(self, session: EndedSession, now_s: float) -> None:
        """Add a record, which is on the disk when this returns. It may wait for other processes.

        Raises: NotTrusted if somebody else can write to the folder. OSError.
        """
        require_trusted_folder(self._folder)
        with _locked(self._path) as handle:
            size = os.fstat(handle).st_size
            if size >= _BYTES_MAX:
                self._replace(handle, session, now_s)
                return
            os.ftruncate(handle, size - size % _RECORD.size)
            _write(handle, [session])
            if size == 0:
                flush_directory(self._folder)

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _replace(self, handle: int, session: EndedSession, now_s: float) -> None:
        """Put a file in place of this one that holds only what is worth keeping, and one record more."""
        kept = EndedList()
        for record in (*_unpack(os.pread(handle, os.fstat(handle).st_size, 0)), session):
            kept.add(record, now_s)
        scratch_handle, scratch = tempfile.mkstemp(prefix=f".{_NAME}-", dir=self._folder)
        try:
            _write(scratch_handle, kept.records(now_s))
            Path(scratch).rename(self._path)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
        finally:
            os.close(scratch_handle)
        flush_directory(self._folder)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open the file for appending and lock it; it exists when this returns, and is the one with this name."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_named(handle, path):  # Otherwise another process has replaced it meanwhile.
                yield handle
                return
        finally:
            os.close(handle)


def _is_named(handle: int, path: Path) -> bool:
    """Return whether the open file is still the one with this name."""
    try:
        return _is_same(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _write(handle: int, records: Iterable[EndedSession]) -> None:
    data = b"".join(_RECORD.pack(*record) for record in records)
    if os.write(handle, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(handle)


def _unpack(data: bytes) -> list[EndedSession]:
    """Return the whole records."""
    whole = data[: len(data) - len(data) % _RECORD.size]
    return [EndedSession(*record) for record in _RECORD.iter_unpack(whole)]
