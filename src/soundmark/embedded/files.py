"""Small files that are there whole or not at all, whatever is killed meanwhile, and that only their owner reads."""

import contextlib
import os
import tempfile
from pathlib import Path

from soundmark.embedded.os_user import OsUser


def write_private(path: Path, text: str, owner: OsUser | None = None) -> None:
    """Put `text` at `path`, mode 0600, on the disk when this returns; `owner` None is ourselves."""
    handle, scratch = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            if owner is not None:
                os.fchown(file.fileno(), owner.uid, owner.gid)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(scratch).rename(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(scratch).unlink()
        raise
    flush_directory(path.parent)


def flush_directory(path: Path) -> None:
    """Put what was made, renamed and removed in `path` on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
