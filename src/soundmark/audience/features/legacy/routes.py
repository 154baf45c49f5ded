"""The routes of legacy aggregates."""

from typing import Annotated, Final

from fastapi import APIRouter, Query

from soundmark.audience.edge import Ctx, serve
from soundmark.audience.features.legacy import service
from soundmark.kit.http.requests.bodies import BodyLimits
from soundmark.kit.http.requests.routes import JsonRoute
from soundmark.wire.audience_report import LegacyReport
from soundmark.wire.private.measurements import (
    LEGACY_DAYS_MAX,
    PUT_LEGACY_DAYS,
    READ_LEGACY_REPORT,
    LegacyReportQuery,
    PutLegacyDaysRequest,
    PutLegacyDaysResponse,
)

# A day with its count has one bracket and two commas and, with the largest count, 52 bytes.
_DAYS_BODY: Final = BodyLimits(1024 * 1024, 4 * LEGACY_DAYS_MAX)


class _DaysRoute(JsonRoute):
    """A route whose body may hold years of days."""

    body_limits: BodyLimits = _DAYS_BODY


router = APIRouter(route_class=_DaysRoute)


@serve(router, PUT_LEGACY_DAYS)
async def put_legacy_days(ctx: Ctx, body: PutLegacyDaysRequest) -> PutLegacyDaysResponse:
    """Replace the counts of some days."""
    return await service.put_legacy_days(ctx, body)


@serve(router, READ_LEGACY_REPORT)
async def read_legacy_report(ctx: Ctx, query: Annotated[LegacyReportQuery, Query()]) -> LegacyReport:
    """Read what was counted before XR v1."""
    return await service.read_legacy_report(ctx, query)
