"""The response of a report."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import numpy as np

from soundmark.audience.domain.aggregation import NO_COUNTRY, Numbers, Reached
from soundmark.audience.domain.packing import RECEIVER_CLASSES, country_code
from soundmark.audience.features.reports.service import Report
from soundmark.wire.audience_report import (
    AudienceReport,
    CampaignCounts,
    CountryCount,
    DayCounts,
    FrequencyCount,
    IntegrityDay,
    IntegritySignals,
    Period,
    ReceiverCount,
    ReportFilters,
    XrCodeCounts,
)
from soundmark.wire.private.measurements import ReportQuery

_DECIMALS: Final = 4


def report_view(report: Report, query: ReportQuery) -> AudienceReport:
    """Return the response that shows one report.

    Each dimension except the days descends by events and then ascends by its key; entries without a key come first.
    """
    counted, names = report.counted, report.names
    days = [
        DayCounts(day=report.first_day + timedelta(days=day), events=events, estimated_reach=reach)
        for day, events, reach in _reach_of(counted.by_day)
    ]
    receivers = [
        ReceiverCount(receiver_class=RECEIVER_CLASSES[number], events=events)
        for number, events in _counts_of(counted.by_receiver)
    ]
    frequencies = [
        FrequencyCount(frequency=frequency, tokens=tokens) for frequency, tokens in _counts_of(counted.frequencies)
    ]
    campaigns = [
        CampaignCounts(campaign_id=names[place].campaign_id, events=events, estimated_reach=reach)
        for place, events, reach in _reach_of(counted.by_campaign)
    ]
    codes = [
        XrCodeCounts(xr_id=names[place].xr_id, events=events, estimated_reach=reach)
        for place, events, reach in _reach_of(counted.by_code)
    ]
    countries = [
        CountryCount(country=_country(key + NO_COUNTRY), events=events)
        for key, events in _counts_of(counted.by_country)
    ]
    return AudienceReport(
        integration_id=report.integration.id,
        mode=report.integration.mode,
        period=Period.model_validate({"from": report.from_at, "to": report.to_at}),
        filters=ReportFilters(campaign_id=query.campaign_id, xr_id=query.xr_id),
        events=counted.events,
        estimated_reach=counted.tokens,
        average_frequency=round(counted.events / counted.tokens, _DECIMALS) if counted.tokens else 0.0,
        by_day=days,
        by_receiver=sorted(receivers, key=lambda row: (-row.events, row.receiver_class)),
        by_frequency=sorted(frequencies, key=lambda row: (-row.frequency * row.tokens, row.frequency)),
        by_campaign=sorted(campaigns, key=lambda row: (-row.events, row.campaign_id or "")),
        by_xr_code=sorted(codes, key=lambda row: (-row.events, row.xr_id)),
        by_country=sorted(countries, key=lambda row: (-row.events, row.country or "")),
        integrity_signals=_integrity(report),
    )


def _counts_of(counts: Numbers) -> Iterator[tuple[int, int]]:
    """Yield each key that was counted, ascending, and how often."""
    for key in np.flatnonzero(counts):
        yield int(key), int(counts[key])


def _reach_of(reached: Reached) -> Iterator[tuple[int, int, int]]:
    """Yield each key that has events, ascending, with its events and its reach."""
    for key, events in _counts_of(reached.events):
        yield key, events, int(reached.tokens[key])


def _country(number: int) -> str | None:
    return None if number == NO_COUNTRY else country_code(number)


def _integrity(report: Report) -> IntegritySignals:
    days = [IntegrityDay.from_record(row) for row in report.integrity_days]
    return IntegritySignals(
        scope="integration_period",
        event_replays=sum(day.event_replays for day in days),
        code_token_duplicates=sum(day.code_token_duplicates for day in days),
        proof_replays=sum(day.proof_replays for day in days),
        by_day=days,
    )
