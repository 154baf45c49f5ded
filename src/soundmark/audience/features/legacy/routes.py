"""The routes of legacy aggregates."""

from typing import Annotated

from fastapi import APIRouter, Query

from soundmark.audience.domain.integration import Workspace
from soundmark.audience.edge import Ctx, InWorkspace
from soundmark.audience.features.legacy import service
from soundmark.audience.features.legacy.wire import LegacyDaysPut, PutLegacyDays
from soundmark.kit.http import JsonRoute
from soundmark.wire.audience_report import LegacyReport
from soundmark.wire.shape import Timestamp

router = APIRouter(route_class=JsonRoute)


@router.put("/v1/legacy-days")
async def put_legacy_days(ctx: Ctx, body: PutLegacyDays) -> LegacyDaysPut:
    """Replace the counts of some days."""
    await service.put_legacy_days(ctx, Workspace(body.organization_id, body.project_id), body.counts())
    return LegacyDaysPut(days=len(body.days))


@router.get("/v1/legacy-report", response_model_by_alias=True)
async def read_legacy_report(
    ctx: Ctx,
    workspace: InWorkspace,
    from_at: Annotated[Timestamp | None, Query(alias="from")] = None,
    to_at: Annotated[Timestamp | None, Query(alias="to")] = None,
) -> LegacyReport:
    """Read what was counted before XR v1."""
    return await service.read_legacy_report(ctx, workspace, from_at=from_at, to_at=to_at)
