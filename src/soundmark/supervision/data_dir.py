"""The data dir of a `soundmark up`: whose turn it is, the master key, and where everything is while it runs."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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


class DataDirRefused(Exception):  # noqa: N818 - named for what is said to the reader
    """The data dir cannot be used; the message is a line for the reader and holds no secret."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The right to use a data dir; `after_crash` when the last holder did not end cleanly."""

    after_crash: bool


def make_data_dir(path: Path) -> None:
    """Make `path`, if there is none, for its owner alone; take one that is there from its owner only.

    Root's may be passed through, so that the unprivileged user of PostgreSQL gets to its part; every file in it has a
    mode of its own.

    Raises: DataDirRefused.
    """
    try:
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        _require_own(path)
    except OSError as error:
        raise DataDirRefused(f"the data dir {path} cannot be made: {error.strerror}") from None
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
        raise DataDirRefused(f"the data dir {path} is a folder that you may not write to")


@contextlib.contextmanager
def take_turn(path: Path) -> Iterator[Turn]:
    """Hold the data dir at `path`; the kernel lets go of it however this process ends.

    Raises: DataDirRefused when another process holds it, naming its pid.
    """
    try:
        handle = open_trusted(path / _LOCK_FILE, os.O_RDWR | os.O_CREAT, is_secret=False)
    except NotTrusted as reason:
        raise DataDirRefused(str(reason)) from None
    except OSError as error:
        raise DataDirRefused(f"{path / _LOCK_FILE} cannot be opened: {error.strerror}") from None
    with os.fdopen(handle, "r+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataDirRefused(f"already running on {path} (pid {file.read().strip() or 'unknown'})") from None
        # The number of whoever held it last stays there unless it took it away itself.
        turn = Turn(after_crash=bool(file.read()))
        _overwrite(file, f"{os.getpid()}\n")
        yield turn
        _overwrite(file, "")


def master_key(path: Path, *, given: str | None, cluster_exists: bool, entropy: Entropy) -> Secret:
    """The master key of the data dir at `path`, made once, when there is nothing yet that another one sealed.

    `given` is the setting `MASTER_KEY`. It is used where there is no key file, and never written to one.

    Raises: DataDirRefused for a missing, broken or contradictory key.
    """
    file = path / MASTER_KEY_FILE
    kept = _kept_key(file)
    if kept is not None:
        if given is not None and given.strip() != kept.reveal():
            raise DataDirRefused(f"SOUNDMARK_MASTER_KEY is not the key in {file}; unset it, or use another data dir")
        return kept
    if given is not None:
        return Secret(given.strip())
    if cluster_exists:
        raise DataDirRefused(
            f"{file} is missing, and without it nothing that the database seals can be opened; put it back"
        )
    made = base64url.encode(entropy.take(MASTER_KEY_BYTES))
    write_private(file, made + "\n")
    return Secret(made)


def kept_master_keys(path: Path) -> tuple[Secret | None, Secret | None]:
    """The master key in the data dir, and the one that it took the place of last.

    Raises: DataDirRefused for what is no key.
    """
    return _kept_key(path / MASTER_KEY_FILE), _kept_key(path / OLD_MASTER_KEY_FILE)


def replace_master_key(path: Path, key: Secret) -> None:
    """`key` is the master key of the data dir; the one before stays beside it. Safe to repeat."""
    kept, _ = kept_master_keys(path)
    if kept is not None and kept.reveal() != key.reveal():
        # First: whatever kills us between the two, both keys are somewhere.
        write_private(path / OLD_MASTER_KEY_FILE, kept.reveal() + "\n")
    write_private(path / MASTER_KEY_FILE, key.reveal() + "\n")


def _kept_key(file: Path) -> Secret | None:
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
    """Say where everything is, to the owner of the data dir alone."""
    write_private(path / UP_FILE, json.dumps(up, indent=2) + "\n")


def remove_up_file(path: Path) -> None:
    """Nothing is anywhere any more."""
    (path / UP_FILE).unlink(missing_ok=True)


def read_up_file(file: Path) -> dict[str, Any]:
    """What `write_up_file` wrote.

    Raises: DataDirRefused when nothing runs there, or the file is somebody else's.
    """
    try:
        up = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataDirRefused(f"{file} does not exist: no `soundmark up` is running there") from None
    except (OSError, ValueError) as error:
        raise DataDirRefused(f"{file} cannot be read: {error}") from None
    if not isinstance(up, dict):
        raise DataDirRefused(f"{file} was not written by `soundmark up`")
    return up


def _overwrite(file: Any, text: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(text)
    file.flush()
