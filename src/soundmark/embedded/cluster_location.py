"""The place of a cluster: in the data dir, unless the user that PostgreSQL runs as cannot enter it."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from soundmark.embedded.installation import SYSTEM_DIRECTORY, make_system_directory
from soundmark.operating_system.files import write_private
from soundmark.operating_system.os_user import OsUser, can_enter, owner_of, unprivileged_user

# This file names the folder of a cluster outside the data dir. Once written, it stays valid.
NOTE: Final = "postgresql.location"


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of a cluster and its owner; `elsewhere` means outside the data dir."""

    path: Path
    user: OsUser | None
    elsewhere: bool


def find_home(data_dir: Path) -> Home:
    """Return where the cluster of `data_dir` is, or will be. This creates the user if missing, and nothing else."""
    note, inside = data_dir / NOTE, data_dir / "postgresql"
    if note.exists():
        return _home(Path(note.read_text(encoding="utf-8").strip()), elsewhere=True)
    if inside.exists():
        return _home(inside, elsewhere=False)
    user = unprivileged_user()
    if can_enter(user, data_dir):
        return Home(inside, user, elsewhere=False)
    digest = hashlib.sha256(os.fsencode(data_dir.absolute())).hexdigest()[:16]
    return _home(SYSTEM_DIRECTORY / f"cluster-{digest}", elsewhere=True)


def make_home(home: Home, data_dir: Path) -> None:
    """Create the folder, for its user alone; if it is elsewhere, write its path into the data dir."""
    if home.elsewhere:
        make_system_directory()
        write_private(data_dir / NOTE, f"{home.path}\n")
    make_private_directory(home.path, home.user)


def place_beside_cluster(home: Home, data_dir: Path, name: str) -> Path:
    """Return the path of `name` in the data dir, or beside a cluster that is elsewhere, for the same reason."""
    return home.path.with_name(f"{home.path.name}-{name}") if home.elsewhere else data_dir / name


def make_private_directory(path: Path, user: OsUser | None) -> None:
    """Create the folder `path` if it is missing; only `user` (None: ourselves) can enter it."""
    if path.exists():
        return
    path.mkdir(mode=0o700)
    if user is not None:
        os.chown(path, user.uid, user.gid)


def _home(path: Path, *, elsewhere: bool) -> Home:
    """Return the home at `path`: an existing cluster runs as its owner, whichever user a new one would get."""
    user = (owner_of(path) if path.exists() else None) or unprivileged_user()
    return Home(path, user, elsewhere)
