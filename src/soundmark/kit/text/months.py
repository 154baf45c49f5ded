"""Days and calendar months in UTC."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import ceil


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month in UTC."""

    first_day: date
    next_first_day: date

    @property
    def name(self) -> str:
        """The year and month, such as 2026-11."""
        return f"{self.first_day:%Y-%m}"

    @property
    def ends_at(self) -> datetime:
        """The first moment of the next month."""
        return datetime.combine(self.next_first_day, datetime.min.time(), UTC)

    def seconds_left(self, now: datetime) -> int:
        """Return the whole seconds until the month is over, at least one."""
        return max(1, ceil((self.ends_at - now).total_seconds()))


def day_of(now: datetime) -> date:
    """Return the day in UTC."""
    return now.astimezone(UTC).date()


def month_of(now: datetime) -> Month:
    """Return the month that `now` lies in."""
    first_day = day_of(now).replace(day=1)
    return Month(first_day, (first_day + timedelta(days=31)).replace(day=1))


def add_months(moment: datetime, count: int, *, anchor_day: int) -> datetime:
    """Return the moment `count` calendar months later, in UTC, on the day `anchor_day` or the month's last day.

    A month after 31 January is the last day of February; with the same anchor, a month after that is 31 March.
    """
    in_utc = moment.astimezone(UTC)
    years, month = divmod(in_utc.month - 1 + count, 12)
    year = in_utc.year + years
    day = min(anchor_day, monthrange(year, month + 1)[1])
    return in_utc.replace(year=year, month=month + 1, day=day)
