"""The number of Codes that an organisation may issue in a calendar month, and has issued."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from soundmark.kit.text.months import Month, month_of

STARTER_PLAN_ID: Final = (
    "plan_codes_starter"  # API v1, "Limits": the plan of every new organisation, 100 Codes a month.
)

THRESHOLDS: Final = (80, 100)  # Contract, section 9: the percentages of the quota that are announced, once a month.


@dataclass(frozen=True, slots=True)
class CodeEntitlement:
    """What an organisation may issue without a subscription: the floor that an operator may have set, or its plan.

    The plan is the Starter plan. If `floor_ends_at` is None, the operator's floor has no end.
    """

    plan_monthly_quota: int
    floor_monthly_quota: int | None
    floor_ends_at: datetime | None

    def monthly_quota(self, at: datetime, *, subscribed: Sequence[int] = ()) -> int:
        """Return how many Codes the organisation may issue in the month of `at`, as of that time.

        `subscribed` are the quotas of the subscriptions that entitle at that time. The highest quota counts.
        """
        return max([self._floor(at), *subscribed])

    def _floor(self, at: datetime) -> int:
        if self.floor_monthly_quota is None or (self.floor_ends_at is not None and at >= self.floor_ends_at):
            return self.plan_monthly_quota
        return self.floor_monthly_quota


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

    def list_reached(self) -> list[int]:
        """Return the thresholds, in per cent, that the issued Codes have reached."""
        return [percent for percent in THRESHOLDS if self.issued_count * 100 >= percent * self.monthly_quota]

    def after(self, count: int) -> "Quota":
        """Return the quota after `count` more Codes are issued."""
        return Quota(self.monthly_quota, self.issued_count + count, self.at)
