#!/usr/bin/env python3
"""Generate the blocking classes from those for asyncio: every module of a folder `_async` becomes one in `_sync`."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import unasync

SOURCES: Final = Path(__file__).parent / "src" / "soundmark_sdk"
_RULE: Final = ("/_async/", "/_sync/")
_HEADER: Final = "# Generated from `../_async/{name}` by `make_blocking.py`: change that file, then run this program.\n"
# Both forms run on the same transports, which are asyncio's. Every other `AsyncName` becomes `Name`.
_REPLACED: Final = {
    "AsyncBaseTransport": "AsyncBaseTransport",
    "AsyncIterator": "Iterator",
    "AsyncRunner": "BlockingRunner",
    "_async": "_sync",
    "aclose": "close",
}


def generate(package: Path) -> list[Path]:
    """Write the blocking modules below a folder, and return their paths."""
    sources = sorted(package.glob("**/_async/*.py"))
    names = {name for source in sources for name in re.findall(r"\bAsync\w+", source.read_text(encoding="utf-8"))}
    replaced = {name: name.removeprefix("Async") for name in names} | _REPLACED
    unasync.unasync_files([str(source) for source in sources], [unasync.Rule(*_RULE, replaced)])
    targets = [source.parents[1] / "_sync" / source.name for source in sources]
    for target in targets:
        text = _HEADER.format(name=target.name) + target.read_text(encoding="utf-8")
        target.write_text(text, encoding="utf-8")
    _run_ruff("check", "--quiet", "--select=I,UP028", "--fix", "--unsafe-fixes", *targets)
    _run_ruff("format", "--quiet", *targets)
    return targets


def _run_ruff(*arguments: str | Path) -> None:
    config = Path(__file__).parents[2] / "pyproject.toml"
    command = [sys.executable, "-m", "ruff", *arguments, f"--config={config}"]
    subprocess.run(command, check=True, timeout=60)  # noqa: S603 - no shell, and our own arguments


if __name__ == "__main__":
    generate(SOURCES)
