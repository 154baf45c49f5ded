"""The reports of Audience."""

from dataclasses import dataclass
from datetime import datetime

from soundmark_sdk.client.records.record import Record


@dataclass(frozen=True, slots=True)
class ReportPeriod(Record):
    """The period of a report, up to but not including `to`. `document` has `from`, which is a keyword of Python."""

    to: datetime


@dataclass(frozen=True, slots=True)
class DayCounts(Record):
    """The counts of a UTC day, such as 2026-11-20."""

    day: str
    events: int
    estimated_reach: int


@dataclass(frozen=True, slots=True)
class ReceiverCount(Record):
    """The events of one class of receivers."""

    receiver_class: str
    events: int


@dataclass(frozen=True, slots=True)
class FrequencyCount(Record):
    """The number of measurement tokens with exactly `frequency` events."""

    frequency: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ReportedCampaign(Record):
    """The counts of a campaign, or of all Codes without a campaign (None)."""

    campaign_id: str | None
    events: int
    estimated_reach: int


@dataclass(frozen=True, slots=True)
class XrCodeCounts(Record):
    """The counts of a Code."""

    xr_id: str
    events: int
    estimated_reach: int


@dataclass(frozen=True, slots=True)
class CountryCount(Record):
    """The events of a country, or those without a country (None)."""

    country: str | None
    events: int


@dataclass(frozen=True, slots=True)
class IntegrityDay(Record):
    """The repetitions that were received on a UTC day and not counted."""

    day: str
    event_replays: int
    code_token_duplicates: int
    proof_replays: int


@dataclass(frozen=True, slots=True)
class IntegritySignals(Record):
    """The repetitions on all days that the period touches, for the whole integration, whatever the filters."""

    scope: str
    event_replays: int
    code_token_duplicates: int
    proof_replays: int
    by_day: tuple[IntegrityDay, ...]


@dataclass(frozen=True, slots=True)
class AudienceReport(Record):
    """The report of an integration about a period."""

    integration_id: str
    mode: str
    period: ReportPeriod
    events: int
    estimated_reach: int
    average_frequency: float | int
    by_day: tuple[DayCounts, ...]
    by_receiver: tuple[ReceiverCount, ...]
    by_frequency: tuple[FrequencyCount, ...]
    by_campaign: tuple[ReportedCampaign, ...]
    by_xr_code: tuple[XrCodeCounts, ...]
    by_country: tuple[CountryCount, ...]
    integrity_signals: IntegritySignals


@dataclass(frozen=True, slots=True)
class LegacyDay(Record):
    """The events of a UTC day before XR v1."""

    day: str
    events: int


@dataclass(frozen=True, slots=True)
class LegacyReport(Record):
    """Daily totals from before XR v1. Nobody verified them, and their reach cannot be compared."""

    label: str
    reach_comparable_to_xr_v1: bool
    period: ReportPeriod
    by_day: tuple[LegacyDay, ...]
    events: int
