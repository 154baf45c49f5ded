"""The data dir of a `soundmark up`: its lock, the master key, and the up-file, which says where everything is."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.sealing import MASTER_KEY_BYTES, parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text import base64url
from soundmark.operating_system.files import (
    NotTrusted,
    open_trusted,
    read_trusted,
    require_trusted_folder,
    write_private,
)

UP_FILE: Final = "up.json"
MASTER_KEY_FILE: Final = "master.key"
OLD_MASTER_KEY_FILE: Final = "master.key.old"
_LOCK_FILE: Final = "lock"
_CONSOLE_PORT_FILE: Final = "console.port"
_PORT_MAX: Final = 65_535
_LOCK_ATTEMPTS: Final = 3  # A command that asks for the lock has it for a moment.
_LOCK_PAUSE_S: Final = 0.05


class DataDirRefused(Exception):
    """The data dir cannot be used; the message is one line for the user, without secrets."""


class NothingRuns(DataDirRefused):
    """No `up` runs on the data dir."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The right to use a data dir; `after_crash` means that the last holder did not end cleanly."""

    after_crash: bool


def make_data_dir(path: Path) -> None:
    """Create the data dir for its owner alone, or check that an existing one is ours.

    Other users can pass through one of root's, so that PostgreSQL's unprivileged user reaches its part; the mode of
    each file in it protects that file.

    Raises: DataDirRefused.
    """
    try:
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        _require_own(path)
    except OSError as error:
        raise DataDirRefused(f"the data dir {path} cannot be created: {error.strerror}") from None
    else:
        path.chmod(0o711 if os.geteuid() == 0 else 0o700)


def _require_own(path: Path) -> None:
    if not path.is_dir():
        raise DataDirRefused(f"the data dir {path} is not a folder")
    try:
        require_trusted_folder(path)
    except NotTrusted as reason:
        raise DataDirRefused(f"the data dir is not safe to use: {reason}") from None
    except OSError as error:
        raise DataDirRefused(f"the data dir {path} cannot be read: {error.strerror}") from None
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise DataDirRefused(f"the data dir {path} is a folder that you cannot write to")


@contextlib.contextmanager
def take_turn(path: Path) -> Iterator[Turn]:
    """Hold the data dir at `path`; the kernel releases it however this process ends.

    Raises: DataDirRefused, naming the pid, if another process holds it.
    """
    try:
        handle = open_trusted(path / _LOCK_FILE, os.O_RDWR | os.O_CREAT, is_secret=False)
    except NotTrusted as reason:
        raise DataDirRefused(str(reason)) from None
    except OSError as error:
        raise DataDirRefused(f"{path / _LOCK_FILE} cannot be opened: {error.strerror}") from None
    with os.fdopen(handle, "r+", encoding="ascii") as file:
        if not _lock(file):
            raise DataDirRefused(f"already running on {path} (pid {file.read().strip() or 'unknown'})")
        # A pid is left in the file if the last holder did not end cleanly.
        turn = Turn(after_crash=bool(file.read()))
        try:
            os.ftruncate(file.fileno(), 0)
            os.pwrite(file.fileno(), f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise DataDirRefused(f"{path / _LOCK_FILE} cannot be written: {error.strerror}") from None
        yield turn
        os.ftruncate(file.fileno(), 0)


def _lock(file: IO[str]) -> bool:
    for _ in range(_LOCK_ATTEMPTS):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_LOCK_PAUSE_S)
    return False


def _is_held(path: Path) -> bool:
    """Return whether a process has its turn on the data dir; True if its lock is not there to be asked."""
    try:
        with (path / _LOCK_FILE).open(encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def master_key(path: Path, *, given: str | None, cluster_exists: bool, entropy: Entropy) -> Secret:
    """Return the master key of the data dir at `path`; create it if there is no cluster yet.

    `given` is the setting `MASTER_KEY`. It is used if there is no key file, and is never written to one.

    Raises: DataDirRefused for a missing, malformed or contradictory key.
    """
    file = path / MASTER_KEY_FILE
    kept = _read_key(file)
    if kept is not None:
        if given is not None and given.strip() != kept.reveal():
            raise DataDirRefused(f"SOUNDMARK_MASTER_KEY is not the key in {file}; unset it, or use another data dir")
        return kept
    if given is not None:
        return Secret(given.strip())
    if cluster_exists:
        raise DataDirRefused(
            f"{file} is missing, and without it the sealed values in the database cannot be opened; put it back"
        )
    made = base64url.encode(entropy.take(MASTER_KEY_BYTES))
    write_private(file, made + "\n")
    return Secret(made)


def read_master_keys(path: Path) -> tuple[Secret | None, Secret | None]:
    """Return the master key in the data dir, and the one that it last replaced.

    Raises: DataDirRefused for a malformed key.
    """
    return _read_key(path / MASTER_KEY_FILE), _read_key(path / OLD_MASTER_KEY_FILE)


def replace_master_key(path: Path, key: Secret) -> None:
    """Make `key` the master key of the data dir, and keep the previous one beside it. Repeating it is safe."""
    kept, _ = read_master_keys(path)
    if kept is not None and kept.reveal() != key.reveal():
        # The old key first: if we are killed between the two writes, neither key is lost.
        write_private(path / OLD_MASTER_KEY_FILE, kept.reveal() + "\n")
    write_private(path / MASTER_KEY_FILE, key.reveal() + "\n")


def _read_key(file: Path) -> Secret | None:
    try:
        text = read_trusted(file).strip()
        parse_master_key(text)
    except FileNotFoundError:
        return None
    except NotTrusted as reason:
        raise DataDirRefused(str(reason)) from None
    except OSError as error:
        raise DataDirRefused(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise DataDirRefused(f"{file} {error}") from None
    return Secret(text)


def write_up_file(path: Path, up: Mapping[str, Any]) -> None:
    """Write the up-file, which says where everything is; only the owner of the data dir can read it."""
    write_private(path / UP_FILE, json.dumps(up, indent=2) + "\n")


def remove_up_file(path: Path) -> None:
    """Remove the up-file, if there is one."""
    (path / UP_FILE).unlink(missing_ok=True)


def read_up_file(file: Path) -> dict[str, Any]:
    """Return what `write_up_file` wrote.

    Raises: NothingRuns, also for a file that an `up` left which was killed; DataDirRefused if it cannot be read.
    """
    try:
        up = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NothingRuns(f"{file} does not exist: no `soundmark up` is running there") from None
    except (OSError, ValueError) as error:
        raise DataDirRefused(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(up, dict):
        raise DataDirRefused(f"{file} was not written by `soundmark up`")
    if not _is_held(file.parent):  # Somebody else may have its ports by now, and would get the operator token.
        raise NothingRuns(f"{file} is from a `soundmark up` that was killed: none is running there; start it again")
    return up


def find_console_port(path: Path) -> int | None:
    """Return the console's port of the last run on the data dir; None if there was none, or nobody can tell."""
    try:
        port = int(read_trusted(path / _CONSOLE_PORT_FILE))
    except (OSError, NotTrusted, ValueError):
        return None
    return port if 0 < port <= _PORT_MAX else None


def keep_console_port(path: Path, port: int) -> None:
    """Remember the console's port for the next run, so that its address, and with it every session, stays."""
    write_private(path / _CONSOLE_PORT_FILE, f"{port}\n")
