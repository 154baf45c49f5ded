"""How much memory this process may use."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# The files with the limit of a control group and of everything in it, by the hierarchy that has them (cgroups(7)).
_LIMIT_FILES: Final = {"": "memory.max", "memory": "memory/memory.limit_in_bytes"}


def find_memory_bytes(system: Path = Path("/")) -> int:
    """Return the machine's memory, or less if a container or unit has a limit; `system` holds `proc` and `sys`."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in _list_limit_files(system):
        with contextlib.suppress(OSError, ValueError):  # No such file; or "max", which is none.
            limits.append(int(file.read_text(encoding="ascii")))
    return min(limits)


def _list_limit_files(system: Path) -> Iterator[Path]:
    """Yield where the limits of our control group and of those around it are, if they exist."""
    try:
        lines = (system / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, hierarchy, group = line.split(":", 2)
        if hierarchy in _LIMIT_FILES:
            folder, _, name = _LIMIT_FILES[hierarchy].rpartition("/")
            ours = Path(group.lstrip("/"))
            for each in (ours, *ours.parents):
                yield system / "sys/fs/cgroup" / folder / each / name
