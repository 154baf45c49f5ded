"""How many Codes an organisation may issue in a calendar month, and how many it has."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Final

STARTER_PLAN_ID: Final = "plan_codes_starter"  # API v1, "Limits": every new organisation's, 100 Codes a month.


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month in UTC."""

    first_day: date
    next_first_day: date

    @property
    def name(self) -> str:
        """Such as 2026-11."""
        return f"{self.first_day:%Y-%m}"

    def seconds_left(self, now: datetime) -> int:
        """Whole seconds until the month is over, at least one."""
        ends_at = datetime.combine(self.next_first_day, datetime.min.time(), UTC)
        return max(1, ceil((ends_at - now).total_seconds()))


def day_of(now: datetime) -> date:
    """The day in UTC."""
    return now.astimezone(UTC).date()


def month_of(now: datetime) -> Month:
    """The month that `now` lies in."""
    first_day = day_of(now).replace(day=1)
    return Month(first_day, (first_day + timedelta(days=31)).replace(day=1))


@dataclass(frozen=True, slots=True)
class CodeEntitlement:
    """The plan of an organisation, and the floor that an operator may have set in Starter's place.

    `floor_ends_at` None is a floor without an end.
    """

    plan_id: str
    plan_monthly_quota: int
    floor_monthly_quota: int | None
    floor_ends_at: datetime | None

    def monthly_quota(self, at: datetime) -> int:
        """Return how many Codes the organisation may issue in the month of `at`, as it stands at that moment."""
        if self.floor_monthly_quota is None or (self.floor_ends_at is not None and at >= self.floor_ends_at):
            return self.plan_monthly_quota
        if self.plan_id == STARTER_PLAN_ID:
            return self.floor_monthly_quota
        return max(self.plan_monthly_quota, self.floor_monthly_quota)


@dataclass(frozen=True, slots=True)
class Quota:
    """What an organisation may issue in a month, and what it has issued in it, at a moment."""

    monthly_quota: int
    issued_count: int
    at: datetime

    @property
    def month(self) -> Month:
        """The month that is counted."""
        return month_of(self.at)

    @property
    def remaining(self) -> int:
        """Codes that may still be issued this month; never below zero, though a plan may shrink."""
        return max(0, self.monthly_quota - self.issued_count)

    def after(self, count: int) -> "Quota":
        """The same once `count` more are issued."""
        return Quota(self.monthly_quota, self.issued_count + count, self.at)
