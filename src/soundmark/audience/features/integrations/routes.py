"""The routes of integrations."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from soundmark.audience.domain.entitlement import Entitlement
from soundmark.audience.domain.integration import Workspace
from soundmark.audience.domain.operation import Asked
from soundmark.audience.edge import Ctx, IntegrationPath, InWorkspace, OperationId
from soundmark.audience.features.integrations import service
from soundmark.audience.features.integrations.wire import (
    ChangeRetention,
    CoreKeyReplaced,
    CreateIntegration,
    IntegrationPage,
    IntegrationView,
    RetentionChanged,
    WithSecret,
    integration_view,
)
from soundmark.audience.wire import CoreKey
from soundmark.kit.http import JsonRoute
from soundmark.kit.paging import LIMIT_MAX, Position
from soundmark.kit.problems import FieldError, ValidationFailed
from soundmark.wire.shape import Timestamp

router = APIRouter(route_class=JsonRoute)

# One more than Core shows on a page: so it learns whether there is another.
Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX + 1)]


@router.post("/v1/integrations", status_code=HTTPStatus.CREATED)
async def create_integration(ctx: Ctx, operation_id: OperationId, body: CreateIntegration) -> WithSecret:
    """Make an integration."""
    asked = Asked(operation_id, "create", Workspace(body.organization_id, body.project_id), None)
    wanted = service.Wanted(body.mode, body.retention_days, body.core_key.trusted(), _entitlement(body))
    return await service.create_integration(ctx, asked, wanted)


@router.get("/v1/integrations")
async def list_integrations(
    ctx: Ctx,
    workspace: InWorkspace,
    limit: Limit,
    before_at: Annotated[Timestamp | None, Query()] = None,
    before_id: Annotated[str | None, Query(max_length=160)] = None,
) -> IntegrationPage:
    """List the integrations of a project, newest first."""
    if (before_at is None) != (before_id is None):
        message = "before_at and before_id come together"
        raise ValidationFailed(errors=(FieldError("query", "/before_id", message),))
    before = None if before_at is None or before_id is None else Position(before_at, before_id)
    found = await service.list_integrations(ctx, workspace, before=before, limit=limit)
    return IntegrationPage(data=[integration_view(integration) for integration in found])


@router.get("/v1/integrations/{integration_id}")
async def read_integration(ctx: Ctx, workspace: InWorkspace, integration_id: IntegrationPath) -> IntegrationView:
    """Read an integration."""
    return integration_view(await service.read_integration(ctx, workspace, integration_id))


@router.post("/v1/integrations/{integration_id}/revoke")
async def revoke_integration(
    ctx: Ctx, workspace: InWorkspace, integration_id: IntegrationPath, operation_id: OperationId
) -> IntegrationView:
    """Revoke an integration."""
    return await service.revoke_integration(ctx, Asked(operation_id, "revoke", workspace, integration_id))


@router.post("/v1/integrations/{integration_id}/secret")
async def rotate_secret(
    ctx: Ctx, workspace: InWorkspace, integration_id: IntegrationPath, operation_id: OperationId
) -> WithSecret:
    """Give an integration another HMAC secret."""
    return await service.rotate_secret(ctx, Asked(operation_id, "rotate_secret", workspace, integration_id))


@router.patch("/v1/integrations/{integration_id}/retention")
async def change_retention(
    ctx: Ctx, workspace: InWorkspace, integration_id: IntegrationPath, operation_id: OperationId, body: ChangeRetention
) -> RetentionChanged:
    """Keep the data of an integration for another time."""
    asked = Asked(operation_id, "change_retention", workspace, integration_id)
    return await service.change_retention(ctx, asked, retention_days=body.retention_days)


@router.post("/v1/integrations/{integration_id}/core-key")
async def replace_core_key(
    ctx: Ctx, workspace: InWorkspace, integration_id: IntegrationPath, operation_id: OperationId, body: CoreKey
) -> CoreKeyReplaced:
    """Have an integration trust another key of Core's."""
    asked = Asked(operation_id, "replace_core_key", workspace, integration_id)
    return await service.replace_core_key(ctx, asked, core_key=body.trusted())


def _entitlement(body: CreateIntegration) -> Entitlement | None:
    part = body.entitlement
    if part is None or body.mode == "demo":
        return None
    return Entitlement(
        organization_id=body.organization_id,
        mode=body.mode,
        monthly_event_quota=part.monthly_event_quota,
        ends_at=part.ends_at,
        revision=part.revision,
    )
