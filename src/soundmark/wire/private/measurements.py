"""The calls from Core to Audience about measurements."""

import re
from collections.abc import Mapping
from datetime import date
from http import HTTPStatus
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, ConfigDict, FailFast, Field, StringConstraints, model_validator

from soundmark.kit.http.requests.private_endpoint import PrivateEndpoint
from soundmark.kit.http.responses.problems import (
    MalformedBody,
    PayloadTooLarge,
    Unauthenticated,
    UnsupportedMediaType,
    ValidationFailed,
)
from soundmark.wire.audience_event import EventAnswer
from soundmark.wire.audience_report import DIMENSION_MAX, AudienceReport, LegacyReport
from soundmark.wire.private.parts import Count, ProjectQuery, TenantId
from soundmark.wire.private.problems import (
    EntitlementRequired,
    EventConflict,
    EventQuotaExceeded,
    IntegrationNotFound,
    IntegrationRevoked,
    OrganizationSuspended,
    ProofInvalid,
    ProofReplayed,
    ReportTooLarge,
)
from soundmark.wire.shape import AudienceMode, CampaignId, Timestamp, Wire, XrId

LEGACY_DAYS_MAX: Final = DIMENSION_MAX  # In one request: 27 years, which is also the maximum of a report.

# The status of each response to an event; only these pairs are valid.
EVENT_STATUSES: Final[Mapping[str, HTTPStatus]] = {"recorded": HTTPStatus.CREATED, "duplicate": HTTPStatus.OK}

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _read_day(value: Any) -> Any:
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or _DAY.fullmatch(value) is None:
        raise ValueError("must be a day such as 2026-11-20")
    return date.fromisoformat(value)


class ReportQuery(Wire):
    """The filters of a report: events from `from_at` to before `to_at`, of one campaign, of one Code.

    None means no filter: from the start of retention, until now, all campaigns, all Codes. Only the administration
    omits the project.
    """

    model_config = ConfigDict(validate_by_name=True)

    organization_id: TenantId | None = None
    project_id: TenantId | None = None
    from_at: Annotated[Timestamp | None, Field(alias="from")] = None
    to_at: Annotated[Timestamp | None, Field(alias="to")] = None
    campaign_id: CampaignId | None = None
    xr_id: XrId | None = None


class LegacyReportQuery(ProjectQuery):
    """The period of a legacy report. None means from the first day with a count, or until now."""

    model_config = ConfigDict(validate_by_name=True)

    from_at: Annotated[Timestamp | None, Field(alias="from")] = None
    to_at: Annotated[Timestamp | None, Field(alias="to")] = None


class UsageQuery(Wire):
    """A calendar month of an organisation, in UTC."""

    organization_id: TenantId
    month: Annotated[str, StringConstraints(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$")]


class ModeUsage(Wire):
    """The events of one mode in the month, and the number of its integrations that are active now."""

    mode: AudienceMode
    events: int
    active_integrations: int


class UsageResponse(Wire):
    """A month's usage of one organisation, in every mode."""

    modes: list[ModeUsage]


class LegacyCount(Wire):
    """A UTC day and its number of events, which cannot be verified."""

    day: Annotated[date, BeforeValidator(_read_day)]
    events: Count


class PutLegacyDaysRequest(Wire):
    """The counts of several days of one project, each day once."""

    organization_id: TenantId
    project_id: TenantId
    days: Annotated[list[LegacyCount], Field(min_length=1, max_length=LEGACY_DAYS_MAX), FailFast()]

    @model_validator(mode="after")
    def _refuse_repeated_day(self) -> "PutLegacyDaysRequest":
        if len({count.day for count in self.days}) != len(self.days):
            raise ValueError("must not contain a day twice")
        return self


class PutLegacyDaysResponse(Wire):
    """How many days now have the counts of the request."""

    days: int


READ_REPORT: Final = PrivateEndpoint(
    "GET", "/v1/reports/{integration_id}", AudienceReport, problems=(IntegrationNotFound, ReportTooLarge)
)
READ_LEGACY_REPORT: Final = PrivateEndpoint("GET", "/v1/legacy-report", LegacyReport, problems=(ReportTooLarge,))
PUT_LEGACY_DAYS: Final = PrivateEndpoint("PUT", "/v1/legacy-days", PutLegacyDaysResponse)
READ_USAGE: Final = PrivateEndpoint("GET", "/v1/usage", UsageResponse)
# Anybody may call this one; Core forwards events with its credential, which exempts them from Audience's rate limit.
DELIVER_EVENT: Final = PrivateEndpoint(
    "POST",
    "/v1/events",
    EventAnswer,
    tuple(EVENT_STATUSES.values()),
    (
        EntitlementRequired,
        EventConflict,
        EventQuotaExceeded,
        IntegrationRevoked,
        MalformedBody,
        OrganizationSuspended,
        PayloadTooLarge,
        ProofInvalid,
        ProofReplayed,
        Unauthenticated,
        UnsupportedMediaType,
        ValidationFailed,
    ),
)
