"""Periods of a subscription, counted in calendar months from its anchor."""

import calendar
from datetime import datetime
from typing import Final

_MONTHS: Final = {"month": 1, "year": 12}


def add_months(anchor_at: datetime, months: int) -> datetime:
    """Return the same day of a later month, or that month's last day."""
    year, month = divmod(anchor_at.month - 1 + months, 12)
    year, month = anchor_at.year + year, month + 1
    return anchor_at.replace(year=year, month=month, day=min(anchor_at.day, calendar.monthrange(year, month)[1]))


def next_end(anchor_at: datetime, interval: str, after: datetime) -> datetime:
    """Return the first end of a period that lies after `after`."""
    months = _MONTHS[interval]
    count = months
    while (end := add_months(anchor_at, count)) <= after:
        count += months
    return end
