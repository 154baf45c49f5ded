"""The route of usage."""

from typing import Annotated

from fastapi import APIRouter, Depends

from soundmark.core.domain.scope import TenantScope
from soundmark.core.edge import Ctx, RequestId, TenantInQuery, needs
from soundmark.core.features.usage import service
from soundmark.core.features.usage.wire import UsageView, usage_view
from soundmark.kit.http import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["Usage"])


@router.get("/v1/usage", openapi_extra=needs("usage.read"))
async def get_usage(
    ctx: Ctx, request_id: RequestId, scope: Annotated[TenantScope, Depends(TenantInQuery("usage.read"))]
) -> UsageView:
    """Read what an organisation has used in the current calendar month."""
    return usage_view(scope.organization_id, await service.read_usage(ctx, scope, request_id=request_id))
