"""How much memory a process may use."""

import os
from pathlib import Path

import pytest

from soundmark.operating_system.memory import find_memory_bytes

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_the_least_limit_of_the_groups_around_us_counts(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Limits of a container, of a unit in it, and of both; without a limit, the machine's memory."""
    cases: list[tuple[str, dict[str, str], int]] = [
        ("", {}, MACHINE),
        ("0::/\n", {}, MACHINE),
        ("0::/\n", {"memory.max": "1000\n"}, 1000),
        ("0::/unit\n", {"memory.max": "max\n", "unit/memory.max": "2000\n"}, 2000),
        ("0::/unit\n", {"memory.max": "1000\n", "unit/memory.max": "2000\n"}, 1000),
        ("0::/unit\n", {"other/memory.max": "1000\n"}, MACHINE),
        ("0::/unit\n", {"unit/memory.max": f"{MACHINE + 1}\n"}, MACHINE),
        ("4:memory:/unit\n1:cpu:/unit\n", {"memory/unit/memory.limit_in_bytes": "3000\n"}, 3000),
        ("4:memory:/unit\n0::/\n", {"memory/memory.limit_in_bytes": "4000\n"}, 4000),
    ]
    for number, (groups, files, expected) in enumerate(cases):
        with subtests.test(groups=groups, files=files):
            system = tmp_path / str(number)
            (system / "proc/self").mkdir(parents=True)
            (system / "proc/self/cgroup").write_text(groups)
            for name, text in files.items():
                file = system / "sys/fs/cgroup" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            assert find_memory_bytes(system) == expected


def test_without_control_groups_it_is_the_machines(tmp_path: Path) -> None:
    assert find_memory_bytes(tmp_path) == MACHINE
