"""What is asked about legacy aggregates. What is answered is the same everywhere: `soundmark.wire.audience_report`."""

import re
from datetime import date
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, FailFast, Field, model_validator

from soundmark.audience.domain.legacy import DAYS_AT_ONCE_MAX, LegacyCount
from soundmark.audience.wire import Count, TenantId
from soundmark.wire.shape import Wire

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _day(value: Any) -> Any:
    if not isinstance(value, str) or _DAY.fullmatch(value) is None:
        raise ValueError("must be a day such as 2026-11-20")
    return date.fromisoformat(value)


class LegacyDayPart(Wire):
    """A UTC day and how many events were counted on it."""

    day: Annotated[date, BeforeValidator(_day)]
    events: Count


class PutLegacyDays(Wire):
    """Counts of days of one project, each day once."""

    organization_id: TenantId
    project_id: TenantId
    days: Annotated[list[LegacyDayPart], Field(min_length=1, max_length=DAYS_AT_ONCE_MAX), FailFast()]

    @model_validator(mode="after")
    def _each_day_once(self) -> "PutLegacyDays":
        if len({part.day for part in self.days}) != len(self.days):
            raise ValueError("a day stands twice")
        return self

    def counts(self) -> list[LegacyCount]:
        """The counts themselves."""
        return [LegacyCount(part.day, part.events) for part in self.days]


class LegacyDaysPut(Wire):
    """How many days have the counts that were given."""

    days: int
