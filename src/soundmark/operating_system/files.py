"""Small files that only their owner can read, and that are written completely or not at all.

These files decide which programs are trusted with every secret, so a file that somebody else could have written is not
read.
"""

import contextlib
import errno
import fcntl
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from soundmark.operating_system.os_user import OsUser

_OTHERS_WRITE: Final = 0o022
_OTHERS: Final = 0o077


class NotTrusted(Exception):
    """Somebody else could have created or changed this file or folder; the message names it and says what to do."""


class InUse(Exception):
    """Another process keeps the file to itself."""


def open_trusted(path: Path, flags: int, *, is_secret: bool, owner_uid: int | None = None) -> int:
    """Open the file at `path` and return its descriptor; a new file gets mode 0600.

    It must be a regular file without further hard links, belong to `owner_uid` (None: to ourselves), and be writable by
    its owner alone; if `is_secret`, it must also be readable by its owner alone. A symbolic link in the last part of
    the path is refused.

    Raises: NotTrusted; OSError if it cannot be opened.
    """
    assert not flags & os.O_TRUNC, "a file must be checked before it is emptied"
    try:
        # Without O_NONBLOCK, opening a named pipe would block.
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotTrusted(f"{path} is a symbolic link; put the file itself there") from None
        raise
    try:
        _check_file(path, os.fstat(handle), os.geteuid() if owner_uid is None else owner_uid, is_secret=is_secret)
    except NotTrusted:
        os.close(handle)
        raise
    return handle


def read_trusted(path: Path, *, owner_uid: int | None = None) -> str:
    """Return the text of a secret file that `open_trusted` accepts.

    Raises: NotTrusted; OSError.
    """
    with os.fdopen(open_trusted(path, os.O_RDONLY, is_secret=True, owner_uid=owner_uid), encoding="utf-8") as file:
        return file.read()


@contextlib.contextmanager
def kept_alone(path: Path) -> Iterator[None]:
    """Keep the file at `path`, which need not exist, from other callers until the block ends or this process dies.

    What is locked is a file beside it, because `write_private` replaces the file itself.

    Raises: InUse; NotTrusted; OSError.
    """
    handle = open_trusted(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, is_secret=False)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(path) from None
        yield
    finally:
        os.close(handle)


def require_trusted_folder(path: Path) -> None:
    """Refuse a folder that somebody else can write to, or in which anybody but root and ourselves owns a file.

    In a folder of root's, a subfolder may belong to somebody else: it holds a cluster that runs as another user.

    Raises: NotTrusted; OSError.
    """
    us = os.geteuid()
    found = path.stat()
    for state in (found, path.lstat()):  # The owner of a link to a folder could point it elsewhere later.
        if state.st_uid != us:
            raise NotTrusted(f"{path} belongs to {_name_of(state.st_uid)} and not to {_name_of(us)}, who runs this")
    if found.st_mode & _OTHERS_WRITE:
        raise NotTrusted(f"{path} can be written to by others; once you trust what is in it: chmod go-w {path}")
    for entry in path.iterdir():
        try:
            state = entry.lstat()
        except FileNotFoundError:
            continue  # A running `up` creates and renames small files.
        if state.st_uid not in {us, 0} and not (us == 0 and stat.S_ISDIR(state.st_mode)):
            raise NotTrusted(f"{entry} belongs to {_name_of(state.st_uid)}; remove it unless you put it there")


def make_private_folder(path: Path, owner: OsUser | None) -> None:
    """Make the folder, if it does not exist, for `owner` (None: ourselves), who also gets the files in it.

    Nobody else may be able to write to the folder's parent.
    """
    path.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() != 0:
        return
    uid, gid = (0, os.getegid()) if owner is None else (owner.uid, owner.gid)
    os.chown(path, uid, gid, follow_symlinks=False)
    for entry in path.iterdir():
        # An earlier owner may have put a link here to a file that was never theirs.
        with contextlib.suppress(OSError), _opened(entry) as handle:
            state = os.fstat(handle)
            if stat.S_ISREG(state.st_mode) and state.st_nlink == 1:
                os.fchown(handle, uid, gid)


def write_private(path: Path, text: str, owner: OsUser | None = None) -> None:
    """Write `text` to `path`, mode 0600, on the disk when this returns; `owner` None means ourselves.

    Raises: OSError, which names `path`.
    """
    handle, scratch = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            if owner is not None:
                os.fchown(file.fileno(), owner.uid, owner.gid)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(scratch).rename(path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            Path(scratch).unlink()
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from None  # The disk is full, say.
        raise
    flush_directory(path.parent)


def flush_directory(path: Path) -> None:
    """Flush the created, renamed and removed entries of the folder `path` to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _check_file(path: Path, state: os.stat_result, owner_uid: int, *, is_secret: bool) -> None:
    if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
        raise NotTrusted(f"{path} is not a file of its own; put the file itself there")
    if state.st_uid != owner_uid:
        raise NotTrusted(f"{path} belongs to {_name_of(state.st_uid)} and not to {_name_of(owner_uid)}")
    if state.st_mode & (_OTHERS if is_secret else _OTHERS_WRITE):
        act = "read" if is_secret else "written to"
        raise NotTrusted(f"{path} can be {act} by others; once you trust what is in it: chmod 600 {path}")


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"the user {uid}"
