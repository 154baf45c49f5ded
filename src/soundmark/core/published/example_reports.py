"""Examples of reports, with sums that agree as in real ones."""

from datetime import datetime, timedelta

from soundmark.wire.audience_report import (
    LEGACY_LABEL,
    AudienceReport,
    CampaignCounts,
    CountryCount,
    DayCounts,
    FrequencyCount,
    IntegrityDay,
    IntegritySignals,
    LegacyDay,
    LegacyReport,
    Period,
    ReceiverCount,
    ReportFilters,
    XrCodeCounts,
)


def example_report(integration_id: str, campaign_id: str, xr_id: str, begin_at: datetime) -> AudienceReport:
    """Return a report on two days of one Code: 1,000 measurement tokens, 240 of them with two events."""
    first = begin_at.date()
    second = first + timedelta(days=1)
    return AudienceReport(
        integration_id=integration_id,
        mode="contract",
        period=_two_days(begin_at),
        filters=ReportFilters(campaign_id=None, xr_id=None),
        events=1240,
        estimated_reach=1000,
        average_frequency=1.24,
        by_day=[
            DayCounts(day=first, events=700, estimated_reach=560),
            DayCounts(day=second, events=540, estimated_reach=440),
        ],
        by_receiver=[
            ReceiverCount(receiver_class="phone", events=1100),
            ReceiverCount(receiver_class="tablet", events=140),
        ],
        by_frequency=[FrequencyCount(frequency=1, tokens=760), FrequencyCount(frequency=2, tokens=240)],
        by_campaign=[CampaignCounts(campaign_id=campaign_id, events=1240, estimated_reach=1000)],
        by_xr_code=[XrCodeCounts(xr_id=xr_id, events=1240, estimated_reach=1000)],
        by_country=[CountryCount(country="TN", events=1200), CountryCount(country=None, events=40)],
        integrity_signals=IntegritySignals(
            scope="integration_period",
            event_replays=12,
            code_token_duplicates=3,
            proof_replays=0,
            by_day=[IntegrityDay(day=first, event_replays=12, code_token_duplicates=3, proof_replays=0)],
        ),
    )


def example_legacy_report(organization_id: str, project_id: str, begin_at: datetime) -> LegacyReport:
    """Return a legacy report on two days."""
    first = begin_at.date()
    return LegacyReport(
        label=LEGACY_LABEL,
        reach_comparable_to_xr_v1=False,
        organization_id=organization_id,
        project_id=project_id,
        period=_two_days(begin_at),
        by_day=[LegacyDay(day=first, events=412), LegacyDay(day=first + timedelta(days=1), events=388)],
        events=800,
    )


def _two_days(begin_at: datetime) -> Period:
    return Period.model_validate({"from": begin_at, "to": begin_at + timedelta(days=2)})
