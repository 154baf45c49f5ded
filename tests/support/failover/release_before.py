"""The release before this one, built from its tag: what runs beside this one during an upgrade."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[3]
_DISTRIBUTIONS: Final = (".", "sdk/python")
_PROGRAM_S: Final = 120


def find_tag_before() -> str | None:
    """Return the newest tag of a release that is older than this commit."""
    try:
        return _run("git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^").decode().strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def install_release_before(folder: Path) -> Path:
    """Build the wheels of the release before and unpack them, as an installer does; return the folder to import from.

    Its dependencies are those of this environment. Before the first release, or without its history, this tree stands
    in for it.
    """
    source, built, installed = folder / "source", folder / "built", folder / "installed"
    tag = find_tag_before()
    if tag is None:
        source = _ROOT
    else:
        source.mkdir()
        archive = _run("git", "archive", "--format=tar", tag)
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True, timeout=_PROGRAM_S)
    for distribution in _DISTRIBUTIONS:
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(built)]
        _run(*command, cwd=source / distribution)
    for wheel in built.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive_of_wheel:
            archive_of_wheel.extractall(installed)
    return installed


def _run(*command: str, cwd: Path = _ROOT) -> bytes:
    return subprocess.run(command, check=True, capture_output=True, cwd=cwd, timeout=_PROGRAM_S).stdout
