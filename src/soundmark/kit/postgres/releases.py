"""The major releases of PostgreSQL that Soundmark supports, and the first minor release of each without known holes.

A version is a number as in libpq: 180004 is 18.4.
"""

from collections.abc import Mapping
from typing import Final

MAJOR_MIN: Final = 15
MAJOR_MAX: Final = 18

KNOWN_GOOD_SINCE: Final = "2026-11-12"  # The day of these releases; look again with each release of ours.
# 18.7 is the security release of that day. The one before, 18.6 (2026-08-13), closed holes through which a database
# user could run code as the server's user. Minor releases of all majors come out together (18.4, 17.10, 16.14 and 15.18
# on 2026-05-14; Debian's 15.20 matches 18.6), which gives the other numbers.
KNOWN_GOOD: Final[Mapping[int, int]] = {18: 180007, 17: 170013, 16: 160017, 15: 150021}

_MINORS: Final = 10_000


def major_of(version: int) -> int:
    """Return the major release of a version: 18 for 18.4."""
    return version // _MINORS


def write_version(version: int) -> str:
    """Return a version as people write it: 18.4."""
    return f"{major_of(version)}.{version % _MINORS}"


def is_supported(version: int) -> bool:
    """Return whether Soundmark supports this major release."""
    return MAJOR_MIN <= major_of(version) <= MAJOR_MAX


def find_warning(version: int) -> str | None:
    """Return a one-sentence warning about a server of this version; None if there is nothing to warn about."""
    if not is_supported(version):
        return f"PostgreSQL {write_version(version)} is not supported; Soundmark runs on PostgreSQL {write_range()}."
    good = KNOWN_GOOD[major_of(version)]
    if version >= good:
        return None
    return (
        f"PostgreSQL {write_version(version)} lacks the security fixes of {write_version(good)} "
        f"({KNOWN_GOOD_SINCE}); upgrade it."
    )


def write_range() -> str:
    """Return the supported major releases, in words."""
    return f"{MAJOR_MIN} to {MAJOR_MAX}"
