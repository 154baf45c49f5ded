"""Reports: Core judges everything that it can before it calls Audience."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.audience.integration import may_be_integration_id
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import CampaignNotFound, CodeNotFound
from soundmark.core.steps.cells import find_audience
from soundmark.core.steps.tenancy import require_project
from soundmark.core.store.codes import campaigns, codes
from soundmark.kit.http.responses.problems import FieldError, ValidationFailed
from soundmark.kit.postgres.transaction import Tx
from soundmark.wire.audience_report import LEGACY_LABEL, AudienceReport, LegacyReport, Period
from soundmark.wire.private.measurements import LegacyReportQuery, ReportQuery
from soundmark.wire.private.problems import IntegrationNotFound

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)  # Of the calendar; no period ends there.


@dataclass(frozen=True, slots=True)
class ReportFilter:
    """What a report is about; None is everything."""

    project_id: str
    from_at: datetime | None
    to_at: datetime | None
    campaign_id: str | None = None
    xr_id: str | None = None


async def read_report(
    ctx: Context, scope: TenantScope, integration_id: str, report_filter: ReportFilter, *, request_id: str
) -> AudienceReport:
    """Report what an integration of the project measured, whether it is revoked or not.

    A campaign must belong to the project, archived or not. A Code must belong to the project and be measured by this
    integration, in any status. Both filters together select their intersection.

    Raises: ProjectNotFound; IntegrationNotFound; CampaignNotFound and CodeNotFound, without a call to Audience;
        ValidationFailed unless the period begins before it ends; ReportTooLarge; AudienceUnavailable.
    Source: API v1, "Report rules".
    """
    to_at = _end(ctx, report_filter)
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await require_project(tx, scope, report_filter.project_id)
        if not may_be_integration_id(integration_id):
            raise IntegrationNotFound
        await _judge_filters(tx, scope, integration_id, report_filter)
        audience = await find_audience(ctx, tx, scope.organization_id)
    if audience is None:
        raise IntegrationNotFound
    query = ReportQuery(
        organization_id=scope.organization_id,
        project_id=report_filter.project_id,
        from_at=report_filter.from_at,
        to_at=to_at,
        campaign_id=report_filter.campaign_id,
        xr_id=report_filter.xr_id,
    )
    return await audience.read_report(integration_id, query, request_id=request_id)


async def read_legacy_report(
    ctx: Context, scope: TenantScope, report_filter: ReportFilter, *, request_id: str
) -> LegacyReport:
    """Report what was counted in the project before XR v1, unverified.

    Raises: ProjectNotFound; ValidationFailed; ReportTooLarge; AudienceUnavailable.
    Source: API v1, "Audience report content".
    """
    to_at = _end(ctx, report_filter)
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await require_project(tx, scope, report_filter.project_id)
        audience = await find_audience(ctx, tx, scope.organization_id)
    if audience is None:
        return _empty_legacy_report(scope, report_filter, to_at)
    query = LegacyReportQuery(
        organization_id=scope.organization_id,
        project_id=report_filter.project_id,
        from_at=report_filter.from_at,
        to_at=to_at,
    )
    return await audience.read_legacy_report(query, request_id=request_id)


def _empty_legacy_report(scope: TenantScope, report_filter: ReportFilter, to_at: datetime) -> LegacyReport:
    """Return what Audience answers where nothing was imported: without `from`, it begins on the last day's midnight."""
    last = to_at - timedelta(milliseconds=1)
    from_at = report_filter.from_at or last.replace(hour=0, minute=0, second=0, microsecond=0)
    return LegacyReport(
        label=LEGACY_LABEL,
        reach_comparable_to_xr_v1=False,
        organization_id=scope.organization_id,
        project_id=report_filter.project_id,
        period=Period.model_validate({"from": from_at, "to": to_at}),
        by_day=[],
        events=0,
    )


def _end(ctx: Context, report_filter: ReportFilter) -> datetime:
    """Return the end of the period, by default now.

    Raises: ValidationFailed.
    """
    now = ctx.clock.now()
    to_at = report_filter.to_at or now.replace(microsecond=now.microsecond // 1000 * 1000)
    if (report_filter.from_at or _BEGINNING) >= to_at:
        raise ValidationFailed(errors=(FieldError("query", "/from", "must precede the end of the period"),))
    return to_at


async def _judge_filters(tx: Tx, scope: TenantScope, integration_id: str, report_filter: ReportFilter) -> None:
    """Make sure that the campaign and the Code belong to the project, and that the integration measures the Code.

    Raises: CampaignNotFound; CodeNotFound.
    """
    if report_filter.campaign_id is not None:
        campaign = await campaigns.find(tx, scope, report_filter.campaign_id)
        if campaign is None or campaign.project_id != report_filter.project_id:
            raise CampaignNotFound
    if report_filter.xr_id is not None:
        code = await codes.find(tx, scope, report_filter.xr_id, project_id=report_filter.project_id)
        if code is None or code.audience_integration_id != integration_id:
            raise CodeNotFound
