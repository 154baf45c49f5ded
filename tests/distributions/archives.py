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


def build_editable(folder: Path, target: Path) -> Path:
    """Build the wheel with which an installer points to `folder` instead of copying it."""
    program = "import sys; from hatchling.build import build_editable; print(build_editable(sys.argv[1]))"
    command = [sys.executable, "-c", program, str(target)]
    return target / subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def version(package: str) -> str:
    """Return the version that a package's pyproject.toml declares."""
    declared: str = tomllib.loads((FOLDERS[package] / "pyproject.toml").read_text())["project"]["version"]
    return declared


def wheel(dist: Path, package: str) -> Path:
    return dist / f"{package}-{version(package)}-py3-none-any.whl"


def source_archive(dist: Path, package: str) -> Path:
    return dist / f"{package}-{version(package)}.tar.gz"
