"""The route of usage."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query

from soundmark.audience.domain.integration import MODES
from soundmark.audience.edge import Ctx, serve
from soundmark.audience.store import event_months, integrations
from soundmark.kit.http.requests.routes import JsonRoute
from soundmark.wire.private.measurements import READ_USAGE, ModeUsage, UsageQuery, UsageResponse

router = APIRouter(route_class=JsonRoute)


@serve(router, READ_USAGE)
async def read_usage(ctx: Ctx, query: Annotated[UsageQuery, Query()]) -> UsageResponse:
    """Read an organisation's usage in a month, by mode, as of one moment.

    Source: API v1, "Usage".
    """
    first_day = date.fromisoformat(f"{query.month}-01")
    async with ctx.db.snapshot() as tx:
        events = await event_months.count_events(tx, query.organization_id, first_day=first_day)
        active = await integrations.count_unrevoked(tx, query.organization_id)
    modes = [
        ModeUsage(mode=mode, events=events.get(mode, 0), active_integrations=active.get(mode, 0)) for mode in MODES
    ]
    return UsageResponse(modes=modes)
