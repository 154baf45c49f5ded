"""The number of Codes that an organisation may issue in a calendar month, and has issued."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from soundmark.kit.text.months import Month, month_of

STARTER_PLAN_ID: Final = (
    "plan_codes_starter"  # API v1, "Limits": the plan of every new organisation, 100 Codes a month.
)


@dataclass(frozen=True, slots=True)
class CodeEntitlement:
    """The plan of an organisation, and the floor that an operator may have set instead of the Starter plan.

    If `floor_ends_at` is None, the floor has no end.
    """

    plan_id: str
    plan_monthly_quota: int
    floor_monthly_quota: int | None
    floor_ends_at: datetime | None

    def monthly_quota(self, at: datetime) -> int:
        """Return how many Codes the organisation may issue in the month of `at`, as of that time."""
        if self.floor_monthly_quota is None or (self.floor_ends_at is not None and at >= self.floor_ends_at):
            return self.plan_monthly_quota
        if self.plan_id == STARTER_PLAN_ID:
            return self.floor_monthly_quota
        return max(self.plan_monthly_quota, self.floor_monthly_quota)


@dataclass(frozen=True, slots=True)
class Quota:
    """The number of Codes that an organisation may issue in a month and has issued in it, as of the time `at`."""

    monthly_quota: int
    issued_count: int
    at: datetime

    @property
    def month(self) -> Month:
        """The month in which Codes are counted."""
        return month_of(self.at)

    @property
    def remaining(self) -> int:
        """The Codes that may still be issued this month; never below zero, even if a plan shrinks."""
        return max(0, self.monthly_quota - self.issued_count)

    def after(self, count: int) -> "Quota":
        """Return the quota after `count` more Codes are issued."""
        return Quota(self.monthly_quota, self.issued_count + count, self.at)
