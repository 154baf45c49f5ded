"""The usage of an organisation in a month."""

from dataclasses import dataclass
from typing import Literal

from soundmark_sdk.client.records.record import Record


@dataclass(frozen=True, slots=True)
class CodesUsage(Record):
    """The Codes issued this month."""

    issued: int
    monthly_quota: int
    remaining: int


@dataclass(frozen=True, slots=True)
class AudienceModeUsage(Record):
    """The events of this month in one entitlement mode. `monthly_quota` is None without a quota."""

    mode: str
    events: int
    active_integrations: int
    monthly_quota: int | None


@dataclass(frozen=True, slots=True)
class AudienceUsage(Record):
    """The usage of Audience, empty while that component is unavailable."""

    status: Literal["available", "unavailable"]
    modes: tuple[AudienceModeUsage, ...]


@dataclass(frozen=True, slots=True)
class Usage(Record):
    """An organisation's usage in a calendar month (UTC), such as 2026-11."""

    organization_id: str
    month: str
    codes: CodesUsage
    audience: AudienceUsage
