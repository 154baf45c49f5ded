"""Write a file completely or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def open_replacement(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file that only its owner can read, and that takes the place of `path` if the block succeeds.

    It is on the disk when the block has ended. If the block fails, nothing is left of it and `path` does not change.

    Raises: OSError.
    """
    target = Path(path)
    if target.exists() and not target.is_file():  # A device or a named pipe would be gone.
        raise OSError(errno.EINVAL, "Not a regular file", str(target))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    except OSError as error:
        error.filename = str(target)  # And not a file that nobody named.
        raise
    scratch = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(target)
    except BaseException:
        with suppress(OSError):
            scratch.unlink()
        raise
