"""Which days of an integration are kept."""

from datetime import date, datetime


def first_kept_day(now: datetime, retention_days: int) -> date:
    """The oldest UTC day that is kept: no event goes before it is `retention_days` times 24 hours old.

    An event of an older day is not recorded, not reported and deleted. No day precedes the calendar's first.
    """
    return date.fromordinal(max(1, now.toordinal() - retention_days))


def first_day_of_month(now: datetime) -> date:
    """The day by which a month of quotas is named."""
    return now.date().replace(day=1)
