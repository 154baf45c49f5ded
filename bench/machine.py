"""The measured machine: a figure means nothing without it."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def described() -> str:
    """Describe the machine and its software, as one paragraph of Markdown."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = ", ".join(f"{name} {version(name)}" for name in ("uvicorn", "uvloop", "psycopg", "PyNaCl"))
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores of {processor()}, {memory_gib:.0f} GiB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, {parts}; PostgreSQL from the "
        f"wheel and wrk ran on the same cores."
    )


def processor() -> str:
    """Return the name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()
