"""Aggregates of the time before XR v1."""

from dataclasses import dataclass
from datetime import date
from typing import Final

DAYS_AT_ONCE_MAX: Final = 10_000  # 27 years, and what a report may hold.


@dataclass(frozen=True, slots=True)
class LegacyCount:
    """How many events somebody counted on a UTC day, in a way that nobody can verify."""

    day: date
    events: int
