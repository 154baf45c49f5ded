"""The routes of legacy aggregates."""

from typing import Annotated, Final

from fastapi import APIRouter, Query

from soundmark.audience.domain.integration import Workspace
from soundmark.audience.domain.legacy import DAYS_AT_ONCE_MAX
from soundmark.audience.edge import Ctx, InWorkspace
from soundmark.audience.features.legacy import service
from soundmark.audience.features.legacy.wire import LegacyDaysPut, PutLegacyDays
from soundmark.kit.bodies import BodyLimits
from soundmark.kit.http import JsonRoute
from soundmark.wire.audience_report import LegacyReport
from soundmark.wire.shape import Timestamp

# A day with its count has one bracket and two commas and, with the largest count, 52 bytes.
_DAYS_BODY: Final = BodyLimits(1024 * 1024, 4 * DAYS_AT_ONCE_MAX)


class _DaysRoute(JsonRoute):
    """A route whose body may hold years of days."""

    body_limits: BodyLimits = _DAYS_BODY


router = APIRouter(route_class=_DaysRoute)


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
