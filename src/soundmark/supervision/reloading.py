"""`soundmark up --reload`: whatever imports a file that changed is restarted, and nothing else."""

import importlib
import importlib.util
import re
import shlex
from collections.abc import AsyncIterator, Collection, Iterable
from pathlib import Path
from typing import Final

import structlog

from soundmark.kit.settings import PREFIX
from soundmark.operating_system.files import write_private
from soundmark.supervision.plan import SANDBOX, Plan
from soundmark.supervision.supervisor import Supervisor

_SOURCE: Final = Path(__file__).parent.parent
_SDK: Final = Path(str(importlib.util.find_spec("soundmark_sdk").origin)).parent  # type: ignore[union-attr]  # installed
# The programs that import each folder. A change elsewhere in the source concerns all of them.
_PROGRAMS: Final = {
    _SOURCE / "core": ("core", "core jobs"),
    _SOURCE / "audience": ("audience", "audience jobs"),
    _SOURCE / "audio": ("audio",),
    _SOURCE / "console": ("console",),
    _SOURCE / "sandbox": (SANDBOX,),
    _SDK: ("console",),
}
# `up` itself is made of these, and does not restart itself.
_OURS: Final = (_SOURCE / "supervision", _SOURCE / "embedded", _SOURCE / "cli" / "up.py")

_FURTHER_CELL: Final = re.compile(r"^audience-cell-\d+")

_log: Final = structlog.get_logger()


class CannotReload(Exception):
    """Files cannot be watched; the message is one line for the user."""


def require_watcher() -> None:
    """Refuse to go on without the library that watches files.

    Raises: CannotReload.
    """
    if importlib.util.find_spec("watchfiles") is None:
        raise CannotReload("--reload needs the package watchfiles, which is in the extra: soundmark[reload]")


async def restart_what_changes(supervisor: Supervisor) -> None:
    """Restart the programs whose source changes, until this is cancelled."""
    async for paths in _watch():
        names = programs_of(paths, supervisor.names())
        if any(path.is_relative_to(ours) for path in paths for ours in _OURS):
            _log.warning("not_reloaded", reason="`soundmark up` itself changed; start it again")
        if names:
            _log.warning("reloading", processes=names)
            await supervisor.restart(names)


def programs_of(paths: Iterable[Path], running: Collection[str]) -> list[str]:
    """Return the names of the running programs that import one of these files."""
    chosen: set[str] = set()
    served = {name for names in _PROGRAMS.values() for name in names}
    for path in paths:
        if any(path.is_relative_to(ours) for ours in _OURS):
            continue
        chosen |= next((set(names) for folder, names in _PROGRAMS.items() if path.is_relative_to(folder)), served)
    return [name for name in running if _FURTHER_CELL.sub("audience", name) in chosen]


def write_environments(plan: Plan, directory: Path) -> None:
    """Write the settings of each unit, so that it can be run beside the others, such as in a debugger.

    `.soundmark/core.env` is for a shell: `set -a; . .soundmark/core.env; set +a`. It holds secrets; only its owner
    reads it.
    """
    for unit in plan.units():
        settings = plan.settings_of(unit)
        del settings[f"{PREFIX}METRICS_PORT"]  # The component that `up` runs listens there.
        lines = (f"{name}={shlex.quote(value)}\n" for name, value in settings.items())
        write_private(directory / f"{unit}.env", "".join(lines))


async def _watch() -> AsyncIterator[set[Path]]:
    # It is not there in most deployments, and takes a while to import.
    watchfiles = importlib.import_module("watchfiles")
    async for changes in watchfiles.awatch(_SOURCE, _SDK, watch_filter=watchfiles.DefaultFilter()):
        yield {Path(path) for _, path in changes}
