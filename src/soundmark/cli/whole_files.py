"""Files that commands write as a whole, or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from soundmark.cli import Refused


@contextmanager
def write_whole(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of `path` if the block succeeds. A device or a pipe is written to as it is.

    Raises: Refused.
    """
    target = Path(os.path.realpath(path))
    is_special = target.exists() and not target.is_file()
    scratch = target if is_special else target.with_name(f".{target.name}.part")
    try:
        with scratch.open("wb") as file:
            yield file
        if not is_special:
            scratch.replace(target)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}") from None
    finally:
        if not is_special:
            with suppress(OSError):
                scratch.unlink()
