"""The route of usage."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query

from soundmark.audience.domain.integration import Mode
from soundmark.audience.edge import Ctx, OrganizationQuery
from soundmark.audience.features.usage import service
from soundmark.kit.http import JsonRoute
from soundmark.wire.shape import Wire

router = APIRouter(route_class=JsonRoute)


class ModeUsageView(Wire):
    """What one mode used, and how many of its integrations are active."""

    mode: Mode
    events: int
    active_integrations: int


class UsageView(Wire):
    """A month's usage of one organisation, of every mode."""

    modes: list[ModeUsageView]


@router.get("/v1/usage")
async def read_usage(
    ctx: Ctx,
    organization_id: OrganizationQuery,
    month: Annotated[str, Query(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$")],
) -> UsageView:
    """Read what an organisation used in a month."""
    used = await service.read_usage(ctx, organization_id, first_day=date.fromisoformat(f"{month}-01"))
    return UsageView(
        modes=[
            ModeUsageView(mode=one.mode, events=one.events, active_integrations=one.active_integrations) for one in used
        ]
    )
