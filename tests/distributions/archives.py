"""Both distributions, built as `make dist` builds them."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FOLDERS = {"soundmark": ROOT, "soundmark_sdk": ROOT / "sdk" / "python"}


def build(folder: Path, target: Path) -> None:
    """Build the distribution of `folder` into `target`, with the command of the Makefile."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def version(package: str) -> str:
    """Return the version that a package's pyproject.toml declares."""
    declared: str = tomllib.loads((FOLDERS[package] / "pyproject.toml").read_text())["project"]["version"]
    return declared


def wheel(dist: Path, package: str) -> Path:
    return dist / f"{package}-{version(package)}-py3-none-any.whl"


def source_archive(dist: Path, package: str) -> Path:
    return dist / f"{package}-{version(package)}.tar.gz"
