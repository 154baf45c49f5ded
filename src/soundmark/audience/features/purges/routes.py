"""The route of purges."""

from typing import Annotated

from fastapi import APIRouter, Query

from soundmark.audience.domain.purge import PurgeSubject
from soundmark.audience.edge import Ctx, OperationId, serve
from soundmark.audience.features.purges import service
from soundmark.kit.http.requests.routes import JsonRoute
from soundmark.wire.private.purges import (
    COUNT_INTEGRATIONS,
    PURGE,
    IntegrationCountResponse,
    PurgeRequest,
    PurgeResponse,
    SubjectQuery,
)

router = APIRouter(route_class=JsonRoute)


@serve(router, PURGE)
async def purge(ctx: Ctx, operation_id: OperationId, body: PurgeRequest) -> PurgeResponse:
    """Delete everything of an organisation or a project, or as much as the deadline allows."""
    return await service.purge(ctx, operation_id, PurgeSubject(body.organization_id, body.project_id))


@serve(router, COUNT_INTEGRATIONS)
async def count_integrations(ctx: Ctx, query: Annotated[SubjectQuery, Query()]) -> IntegrationCountResponse:
    """Count the integrations that a purge would delete."""
    subject = PurgeSubject(query.organization_id, query.project_id)
    return IntegrationCountResponse(integrations=await service.count_integrations(ctx, subject))
