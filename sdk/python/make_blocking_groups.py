#!/usr/bin/env python3
"""Write `blocking_groups.py` from `async_groups.py`: the same operations, without asyncio."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "src" / "soundmark_sdk" / "client"
SOURCE: Final = _FOLDER / "async_groups.py"
TARGET: Final = _FOLDER / "blocking_groups.py"
_REPLACED: Final = (
    (r'\A"""(.*?), for asyncio\.\n.*?\n(Every method)', r'"""\1, for blocking code.\n\nMade from `async_groups`.\n\2'),
    (r"\basync def\b", "def"),
    (r"async for (\w+) in (.*?):\n +yield \1\n", r"yield from \2\n"),
    (r"\bawait ", ""),
    (r"\bAsyncSender\b", "BlockingSender"),
    (r"\b(_?)Async(?=[A-Z])", r"\1"),
)


def blocking(source: str) -> str:
    """Return the blocking module that an asyncio one stands for."""
    for pattern, replacement in _REPLACED:
        source = re.sub(pattern, replacement, source, flags=re.DOTALL)
    sorted_source = _ruff("check", "--quiet", "--select=I", "--fix", source=source)
    return _ruff("format", source=sorted_source)


def _ruff(*arguments: str, source: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, f"--stdin-filename={TARGET}", "-"]
    done = subprocess.run(  # noqa: S603 - no shell, and our own words
        command, check=True, capture_output=True, text=True, input=source, timeout=60
    )
    return done.stdout


if __name__ == "__main__":
    TARGET.write_text(blocking(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
