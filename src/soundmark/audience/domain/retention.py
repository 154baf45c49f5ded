"""The days of an integration that are kept."""

from datetime import date, datetime


def first_kept_day(now: datetime, retention_days: int) -> date:
    """Return the oldest UTC day that is kept, so that every event is kept for `retention_days` times 24 hours.

    Events of older days are not recorded, not reported and deleted. No day precedes the first of the calendar.
    """
    return date.fromordinal(max(1, now.toordinal() - retention_days))
