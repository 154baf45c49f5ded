"""Examples of reports, with sums that agree as in real ones."""

from datetime import UTC, datetime, timedelta
from typing import Final

from soundmark.core.edge.examples import CAMPAIGN, CODE, INTEGRATION, PROJECT
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

_BEGIN_AT: Final = datetime(2026, 11, 18, tzinfo=UTC)
_PERIOD: Final = Period.model_validate({"from": _BEGIN_AT, "to": _BEGIN_AT + timedelta(days=2)})
_FIRST: Final = _BEGIN_AT.date()
_SECOND: Final = _FIRST + timedelta(days=1)

# On two days of one Code: 1,000 measurement tokens, 240 of them with two events.
REPORT: Final = AudienceReport(
    integration_id=INTEGRATION.id,
    mode="contract",
    period=_PERIOD,
    filters=ReportFilters(campaign_id=None, xr_id=None),
    events=1240,
    estimated_reach=1000,
    average_frequency=1.24,
    by_day=[
        DayCounts(day=_FIRST, events=700, estimated_reach=560),
        DayCounts(day=_SECOND, events=540, estimated_reach=440),
    ],
    by_receiver=[
        ReceiverCount(receiver_class="phone", events=1100),
        ReceiverCount(receiver_class="tablet", events=140),
    ],
    by_frequency=[FrequencyCount(frequency=1, tokens=760), FrequencyCount(frequency=2, tokens=240)],
    by_campaign=[CampaignCounts(campaign_id=CAMPAIGN.id, events=1240, estimated_reach=1000)],
    by_xr_code=[XrCodeCounts(xr_id=CODE.xr_id, events=1240, estimated_reach=1000)],
    by_country=[CountryCount(country="TN", events=1200), CountryCount(country=None, events=40)],
    integrity_signals=IntegritySignals(
        scope="integration_period",
        event_replays=12,
        code_token_duplicates=3,
        proof_replays=0,
        by_day=[IntegrityDay(day=_FIRST, event_replays=12, code_token_duplicates=3, proof_replays=0)],
    ),
)
LEGACY_REPORT: Final = LegacyReport(
    label=LEGACY_LABEL,
    reach_comparable_to_xr_v1=False,
    organization_id=PROJECT.organization_id,
    project_id=PROJECT.id,
    period=_PERIOD,
    by_day=[LegacyDay(day=_FIRST, events=412), LegacyDay(day=_SECOND, events=388)],
    events=800,
)
