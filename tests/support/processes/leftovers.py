"""What a session of tests leaves behind: temporary files, processes and lent connections."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

# Ours, and those of Python's own default. A browser and a Java program leave files too, which end with the folder.
_PREFIXES = ("soundmark", "tmp")


@contextlib.contextmanager
def clean_temporary_folder() -> Iterator[Path]:
    """Put the temporary files of the block into a folder of its own.

    Fail if files of ours are left at its end, or if a process that it started still runs.
    """
    # A short name, because sockets lie in it. Everybody may write, because some tests run as an ordinary user.
    folder = Path(tempfile.mkdtemp(prefix="tests-"))
    folder.chmod(0o1777)
    before = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    known = {child.pid for child in running_children()}
    try:
        yield folder
        files = sorted(path.name for path in folder.iterdir() if path.name.startswith(_PREFIXES))
        processes = [" ".join(child.cmdline()) for child in running_children() if child.pid not in known]
        assert not files + processes, f"the tests left behind: {files + processes}"
    finally:
        tempfile.tempdir = before[0]
        if before[1] is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before[1]
        shutil.rmtree(folder, ignore_errors=True)


def running_children() -> list[psutil.Process]:
    """Return the processes that this one started, directly or not, except those of Python's multiprocessing."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() != psutil.STATUS_ZOMBIE and "multiprocessing" not in " ".join(child.cmdline()):
                found.append(child)
    return found
