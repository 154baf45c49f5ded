"""What a report of measurements says, as JSON and as CSV: counts of what was recorded, and nothing else of it."""

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, StringConstraints

from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.audience_event import ReceiverClass
from soundmark.wire.shape import CampaignId, IntegrationId, Timestamp, Wire, XrId

DIMENSION_MAX: Final = 10_000  # API v1, "Report rules", 4.
LEGACY_LABEL: Final = "legacy_unverified_aggregate"
CSV_COLUMNS: Final = ("dimension", "key", "metric", "value")

Count = Annotated[int, Field(ge=0)]
# Any code, not only today's list: events stay in reports after ISO withdraws their country code.
Country = Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")]
Row = tuple[str, str, str, str]


class Period(Wire):
    """The period of a report, from `from` (inclusive) to `to` (exclusive)."""

    model_config = ConfigDict(serialize_by_alias=True)

    from_: Annotated[Timestamp, Field(alias="from")]
    to: Timestamp


class ReportFilters(Wire):
    """The filters of the report; null if a filter was not given."""

    campaign_id: CampaignId | None
    xr_id: XrId | None


class DayCounts(Wire):
    """The events of one UTC day."""

    day: date
    events: Count
    estimated_reach: Count


class ReceiverCount(Wire):
    """The events of one class of receivers."""

    receiver_class: ReceiverClass
    events: Count


class FrequencyCount(Wire):
    """The number of measurement tokens that have exactly `frequency` events."""

    frequency: Count
    tokens: Count


class CampaignCounts(Wire):
    """The events of one campaign, as named in the proofs. `campaign_id` is null for Codes without a campaign."""

    campaign_id: CampaignId | None
    events: Count
    estimated_reach: Count


class XrCodeCounts(Wire):
    """The events of one Code."""

    xr_id: XrId
    events: Count
    estimated_reach: Count


class CountryCount(Wire):
    """The events of one country; `country` is null for events without one."""

    country: Country | None
    events: Count


class IntegrityDay(Wire):
    """The replays received on one UTC day, none of which was counted again."""

    day: date
    event_replays: Count
    code_token_duplicates: Count
    proof_replays: Count


class IntegritySignals(Wire):
    """Totals for every whole day that the period overlaps, for the whole integration regardless of filters."""

    scope: Literal["integration_period"]
    event_replays: Count
    code_token_duplicates: Count
    proof_replays: Count
    by_day: list[IntegrityDay]


class AudienceReport(Wire):
    """The measurements of an integration in a period.

    Days are in ascending order. Other dimensions are in descending order of events, then in ascending order of key,
    with a null key first.
    """

    integration_id: IntegrationId
    mode: Literal["demo", "contract", "self_service"]
    period: Period
    filters: ReportFilters
    events: Count
    estimated_reach: Annotated[Count, Field(description="The number of distinct measurement tokens.")]
    average_frequency: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="Events per measurement token, to 4 decimals.")
    ]
    by_day: Annotated[list[DayCounts], Field(max_length=DIMENSION_MAX)]
    by_receiver: Annotated[list[ReceiverCount], Field(max_length=DIMENSION_MAX)]
    by_frequency: Annotated[list[FrequencyCount], Field(max_length=DIMENSION_MAX)]
    by_campaign: Annotated[list[CampaignCounts], Field(max_length=DIMENSION_MAX)]
    by_xr_code: Annotated[list[XrCodeCounts], Field(max_length=DIMENSION_MAX)]
    by_country: Annotated[list[CountryCount], Field(max_length=DIMENSION_MAX)]
    integrity_signals: IntegritySignals


class LegacyDay(Wire):
    """The events of one UTC day before XR v1."""

    day: date
    events: Count


class LegacyReport(Wire):
    """Daily totals from before XR v1. They are not verified, and their reach is not comparable to that of XR v1."""

    label: Literal["legacy_unverified_aggregate"]
    reach_comparable_to_xr_v1: Literal[False]
    organization_id: str
    project_id: str
    period: Period
    by_day: Annotated[list[LegacyDay], Field(max_length=DIMENSION_MAX)]
    events: Count


def report_csv(report: AudienceReport) -> bytes:
    """Return the report as CSV (RFC 4180, UTF-8), one line for each number; a null key is an empty cell."""
    return _csv([*_head(report), *_dimensions(report), *_integrity(report.integrity_signals)])


def legacy_csv(report: LegacyReport) -> bytes:
    """Return the legacy report as CSV (RFC 4180, UTF-8), one line for each number."""
    return _csv(
        [
            ("report", "", "label", report.label),
            ("report", "", "reach_comparable_to_xr_v1", "false"),
            ("report", "", "organization_id", report.organization_id),
            ("report", "", "project_id", report.project_id),
            *_period(report.period),
            ("total", "", "events", str(report.events)),
            *(("by_day", row.day.isoformat(), "events", str(row.events)) for row in report.by_day),
        ]
    )


def _head(report: AudienceReport) -> Iterator[Row]:
    yield "report", "", "integration_id", report.integration_id
    yield "report", "", "mode", report.mode
    yield from _period(report.period)
    yield "report", "", "campaign_id", report.filters.campaign_id or ""
    yield "report", "", "xr_id", report.filters.xr_id or ""
    yield "total", "", "events", str(report.events)
    yield "total", "", "estimated_reach", str(report.estimated_reach)
    yield "total", "", "average_frequency", f"{report.average_frequency:.4f}"


def _period(period: Period) -> tuple[Row, Row]:
    return (
        ("report", "", "from", format_timestamp(period.from_)),
        ("report", "", "to", format_timestamp(period.to)),
    )


def _dimensions(report: AudienceReport) -> Iterator[Row]:
    dimensions: tuple[tuple[str, str, Sequence[Wire]], ...] = (
        ("by_day", "day", report.by_day),
        ("by_receiver", "receiver_class", report.by_receiver),
        ("by_frequency", "frequency", report.by_frequency),
        ("by_campaign", "campaign_id", report.by_campaign),
        ("by_xr_code", "xr_id", report.by_xr_code),
        ("by_country", "country", report.by_country),
    )
    for dimension, key, rows in dimensions:
        yield from _rows(dimension, key, rows)


def _integrity(signals: IntegritySignals) -> Iterator[Row]:
    for metric in ("event_replays", "code_token_duplicates", "proof_replays"):
        yield "integrity_signals", "", metric, str(getattr(signals, metric))
    yield from _rows("integrity_signals", "day", signals.by_day)


def _rows(dimension: str, key: str, rows: Sequence[Wire]) -> Iterator[Row]:
    for row in rows:
        values = dict(row)
        named = values.pop(key)
        for metric, value in values.items():
            yield dimension, "" if named is None else str(named), metric, str(value)


def _csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO(newline="")
    # No cell can be taken for a formula: each is a number, a date, a timestamp, a fixed word or an id with its prefix.
    csv.writer(text, lineterminator="\r\n").writerows([CSV_COLUMNS, *rows])
    return text.getvalue().encode()
