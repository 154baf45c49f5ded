"""Store issuances until their answers are known."""

import contextlib
import os
import sqlite3
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol, Self

# The service keeps a receipt for 24 hours (API v1, "Limits"). A repeat after that would issue again, so nothing that is
# nearly as old is repeated.
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
    """A store of issuances, for one client at a time. A second client would take the first one's work for left over.

    A client calls it from one thread at a time and waits for it, so it should be as fast as a disk.
    """

    def remember(self, issuance: RememberedIssuance) -> None:
        """Store an issuance durably under its key, and replace any other with the same key."""
        ...

    def forget(self, idempotency_key: str) -> None:
        """Delete an issuance; an unknown key changes nothing."""
        ...

    def list_unsettled(self) -> tuple[RememberedIssuance, ...]:
        """Return all stored issuances, oldest first."""
        ...


class MemoryRecoveryStore:
    """A store that lasts as long as the program runs."""

    def __init__(self) -> None:
        self._kept: dict[str, RememberedIssuance] = {}

    def remember(self, issuance: RememberedIssuance) -> None:
        """See `RecoveryStore`."""
        self._kept[issuance.idempotency_key] = issuance

    def forget(self, idempotency_key: str) -> None:
        """See `RecoveryStore`."""
        self._kept.pop(idempotency_key, None)

    def list_unsettled(self) -> tuple[RememberedIssuance, ...]:
        """See `RecoveryStore`."""
        return tuple(sorted(self._kept.values(), key=lambda issuance: issuance.remembered_at))


class FileRecoveryStore:
    """A store in a file, which survives restarts and crashes of the program.

    The file is an SQLite database with mode 0600; when `remember` returns, the issuance is on the disk. Only one
    program at a time can open it, because each would take the other's work for left over. Close it, or use it as a
    context manager.
    """

    def __init__(self, path: Path | str) -> None:
        """Raises: ValueError when another program uses the file, or when it is not a recovery file; OSError."""
        self._path: Final = Path(path)
        # SQLite would create it with the mode of the umask.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        self._path.chmod(0o600)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA synchronous = FULL")
            # In this mode the first transaction locks the file, and the lock lasts until the file is closed.
            self._db.execute("BEGIN EXCLUSIVE")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS issuances (idempotency_key TEXT PRIMARY KEY, base_url TEXT NOT NULL,"
                " is_batch INTEGER NOT NULL, body BLOB NOT NULL, remembered_at_us INTEGER NOT NULL)"
            )
            self._db.execute("COMMIT")
        except sqlite3.OperationalError:
            self._db.close()
            raise ValueError("Another program is using the recovery file.") from None
        except sqlite3.DatabaseError:
            self._db.close()
            raise ValueError("That file is not a recovery file.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file; closing again does nothing."""
        with self._lock:
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
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO issuances VALUES (?, ?, ?, ?, ?)", row)

    def forget(self, idempotency_key: str) -> None:
        """See `RecoveryStore`."""
        with self._lock:
            self._db.execute("DELETE FROM issuances WHERE idempotency_key = ?", (idempotency_key,))

    def list_unsettled(self) -> tuple[RememberedIssuance, ...]:
        """See `RecoveryStore`."""
        with self._lock, contextlib.closing(self._db.execute(_SELECT)) as rows:
            return tuple(
                RememberedIssuance(key, base_url, bool(is_batch), body, _EPOCH + timedelta(microseconds=at_us))
                for key, base_url, is_batch, body, at_us in rows
            )


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SELECT: Final = (
    "SELECT idempotency_key, base_url, is_batch, body, remembered_at_us"
    " FROM issuances ORDER BY remembered_at_us, idempotency_key"
)
