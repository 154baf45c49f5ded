"""The releases of PostgreSQL that Soundmark runs on, and the minor of each from which it is known to be good.

A version is a number as libpq has it: 180004 is 18.4.
"""

from collections.abc import Mapping
from typing import Final

MAJOR_MIN: Final = 15
MAJOR_MAX: Final = 18

KNOWN_GOOD_SINCE: Final = "2026-11-12"  # The day of these releases; look again with each release of ours.
# 18.7 is the security release of that day; 18.6 (2026-08-13) before it ended ways in which a user of the database runs
# code as the server's. The project numbers the minors of all majors alike (18.4, 17.10, 16.14 and 15.18 came out
# together on 2026-05-14, and Debian's 15.20 is the 18.6 of its major), which gives the others.
KNOWN_GOOD: Final[Mapping[int, int]] = {18: 180007, 17: 170013, 16: 160017, 15: 150021}

_MINORS: Final = 10_000


def major_of(version: int) -> int:
    """Return the major release of a version: 18 for 18.4."""
    return version // _MINORS


def write_version(version: int) -> str:
    """Return a version as people write it: 18.4."""
    return f"{major_of(version)}.{version % _MINORS}"


def is_supported(version: int) -> bool:
    """Whether Soundmark is made for this major release."""
    return MAJOR_MIN <= major_of(version) <= MAJOR_MAX


def find_warning(version: int) -> str | None:
    """Return what to say against a server of this version, in one sentence; None when nothing is."""
    if not is_supported(version):
        return f"PostgreSQL {write_version(version)} is none of the releases that Soundmark runs on, {write_range()}."
    good = KNOWN_GOOD[major_of(version)]
    if version >= good:
        return None
    return (
        f"PostgreSQL {write_version(version)} lacks security fixes that {write_version(good)} "
        f"({KNOWN_GOOD_SINCE}) has; upgrade it."
    )


def write_range() -> str:
    """Return the major releases that Soundmark runs on, in words."""
    return f"{MAJOR_MIN} to {MAJOR_MAX}"
