"""The routes of integrations."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from soundmark.audience.domain.integration import Workspace
from soundmark.audience.domain.operation import RequestedOperation
from soundmark.audience.edge import Ctx, IntegrationPath, InWorkspace, OperationId, OperationOn, OrganizationPath, serve
from soundmark.audience.features.integrations import core_keys, service
from soundmark.kit.http.requests.routes import JsonRoute
from soundmark.kit.http.responses.problems import FieldError, ValidationFailed
from soundmark.wire.private import integrations as private
from soundmark.wire.private.parts import CoreKey

router = APIRouter(route_class=JsonRoute)


@serve(router, private.CREATE_INTEGRATION)
async def create_integration(
    ctx: Ctx, operation_id: OperationId, body: private.CreateIntegrationRequest
) -> private.IntegrationSecretResponse:
    """Create an integration."""
    operation = RequestedOperation(operation_id, "create", Workspace(body.organization_id, body.project_id), None)
    return await service.create_integration(ctx, operation, body)


@serve(router, private.LIST_INTEGRATIONS)
async def list_integrations(
    ctx: Ctx, query: Annotated[private.IntegrationsQuery, Query()]
) -> private.IntegrationsResponse:
    """List the integrations of a project, newest first."""
    if (query.before_at is None) != (query.before_id is None):
        message = "before_at and before_id come together"
        raise ValidationFailed(errors=(FieldError("query", "/before_id", message),))
    return await service.list_integrations(ctx, query)


@serve(router, private.LIST_INVENTORY)
async def list_inventory(
    ctx: Ctx, organization_id: OrganizationPath, query: Annotated[private.InventoryQuery, Query()]
) -> private.IntegrationsResponse:
    """List the integrations of an organisation, oldest first."""
    return await service.list_inventory(ctx, organization_id, query)


@serve(router, private.READ_INTEGRATION)
async def read_integration(
    ctx: Ctx, workspace: InWorkspace, integration_id: IntegrationPath
) -> private.IntegrationResponse:
    """Read an integration."""
    return await service.read_integration(ctx, workspace, integration_id)


@serve(router, private.REVOKE_INTEGRATION)
async def revoke_integration(
    ctx: Ctx, operation: Annotated[RequestedOperation, Depends(OperationOn("revoke"))]
) -> private.IntegrationResponse:
    """Revoke an integration."""
    return await service.revoke_integration(ctx, operation)


@serve(router, private.ROTATE_SECRET)
async def rotate_secret(
    ctx: Ctx, operation: Annotated[RequestedOperation, Depends(OperationOn("rotate_secret"))]
) -> private.IntegrationSecretResponse:
    """Rotate the HMAC secret of an integration."""
    return await service.rotate_secret(ctx, operation)


@serve(router, private.CHANGE_RETENTION)
async def change_retention(
    ctx: Ctx,
    operation: Annotated[RequestedOperation, Depends(OperationOn("change_retention"))],
    body: private.ChangeRetentionRequest,
) -> private.RetentionResponse:
    """Change how long an integration keeps its data."""
    return await service.change_retention(ctx, operation, retention_days=body.retention_days)


@serve(router, private.REPLACE_CORE_KEY)
async def replace_core_key(
    ctx: Ctx, operation: Annotated[RequestedOperation, Depends(OperationOn("replace_core_key"))], body: CoreKey
) -> private.CoreKeyResponse:
    """Make an integration trust another key of Core's."""
    return await service.replace_core_key(ctx, operation, core_key=body)


@serve(router, private.TRUST_EVERYWHERE)
async def trust_everywhere(ctx: Ctx, body: private.TrustEverywhereRequest) -> private.TrustEverywhereResponse:
    """Make the next integrations trust a key."""
    return await core_keys.trust_everywhere(ctx, body)
