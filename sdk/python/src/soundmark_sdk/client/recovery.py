"""What a client remembers of an issuance until it knows how it ended."""

import contextlib
import os
import sqlite3
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol, Self

# The service keeps a receipt for 24 hours (API v1, "Limits"). Past that a repeat would issue anew, so nothing is
# repeated that is nearly as old.
REMEMBERED_FOR: Final = timedelta(hours=23)


@dataclass(frozen=True, slots=True)
class RememberedIssuance:
    """An issuance whose answer is not known yet: its idempotency key, and exactly the bytes that were sent."""

    idempotency_key: str
    base_url: str
    is_batch: bool
    body: bytes = field(repr=False)
    remembered_at: datetime


class RecoveryStore(Protocol):
    """Where issuances are remembered, for one client at a time: what another is in the middle of looks like left over.

    A client calls it from one thread at a time, and waits for it: it should be as fast as a disk.
    """

    def remember(self, issuance: RememberedIssuance) -> None:
        """Keep it under its key, in the place of one that has the same; it is kept for good once this returns."""
        ...

    def forget(self, idempotency_key: str) -> None:
        """Keep it no more; a key that is not there changes nothing."""
        ...

    def unsettled(self) -> tuple[RememberedIssuance, ...]:
        """Return everything that is kept, oldest first."""
        ...


class MemoryRecoveryStore:
    """Remembers for as long as the program runs."""

    def __init__(self) -> None:
        self._kept: dict[str, RememberedIssuance] = {}

    def remember(self, issuance: RememberedIssuance) -> None:
        """See `RecoveryStore`."""
        self._kept[issuance.idempotency_key] = issuance

    def forget(self, idempotency_key: str) -> None:
        """See `RecoveryStore`."""
        self._kept.pop(idempotency_key, None)

    def unsettled(self) -> tuple[RememberedIssuance, ...]:
        """See `RecoveryStore`."""
        return tuple(sorted(self._kept.values(), key=lambda issuance: issuance.remembered_at))


class FileRecoveryStore:
    """Remembers in a file, across restarts and crashes of the program.

    The file is an SQLite database of mode 0600: what `remember` returned from is on the disk. It belongs to one program
    at a time, because what another one is in the middle of must not be taken for something that was left over.
    Close it, or use it as a context manager.
    """

    def __init__(self, path: Path | str) -> None:
        """Raises: ValueError where the file is another program's at present, or no such file; OSError."""
        self._path: Final = Path(path)
        # Made by us and not by SQLite, which would ask the umask.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        self._path.chmod(0o600)
        self._turn = threading.Lock()
        self._db = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA synchronous = FULL")
            # In this mode the first transaction takes the file's lock and keeps it until the file is closed.
            self._db.execute("BEGIN EXCLUSIVE")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS issuances (idempotency_key TEXT PRIMARY KEY, base_url TEXT NOT NULL,"
                " is_batch INTEGER NOT NULL, body BLOB NOT NULL, remembered_at_us INTEGER NOT NULL)"
            )
            self._db.execute("COMMIT")
        except sqlite3.OperationalError:
            self._db.close()
            raise ValueError("The recovery file is used by another program at present.") from None
        except sqlite3.DatabaseError:
            self._db.close()
            raise ValueError("The recovery file is not one.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go; closing again does nothing."""
        with self._turn:
            self._db.close()

    def remember(self, issuance: RememberedIssuance) -> None:
        """See `RecoveryStore`."""
        row = (
            issuance.idempotency_key,
            issuance.base_url,
            issuance.is_batch,
            issuance.body,
            (issuance.remembered_at - _EPOCH) // timedelta(microseconds=1),
        )
        with self._turn:
            self._db.execute("INSERT OR REPLACE INTO issuances VALUES (?, ?, ?, ?, ?)", row)

    def forget(self, idempotency_key: str) -> None:
        """See `RecoveryStore`."""
        with self._turn:
            self._db.execute("DELETE FROM issuances WHERE idempotency_key = ?", (idempotency_key,))

    def unsettled(self) -> tuple[RememberedIssuance, ...]:
        """See `RecoveryStore`."""
        with self._turn, contextlib.closing(self._db.execute(_UNSETTLED)) as rows:
            return tuple(
                RememberedIssuance(key, base_url, bool(is_batch), body, _EPOCH + timedelta(microseconds=at_us))
                for key, base_url, is_batch, body, at_us in rows
            )


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNSETTLED: Final = (
    "SELECT idempotency_key, base_url, is_batch, body, remembered_at_us"
    " FROM issuances ORDER BY remembered_at_us, idempotency_key"
)
