"""Days and calendar months in UTC."""

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
