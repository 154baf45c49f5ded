"""The routes of Audience integrations."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Path, Query

from soundmark.core.domain.audience import integration
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, RequestId, Tenant
from soundmark.core.features.audience.integrations import example, names, service
from soundmark.core.features.audience.integrations.wire import (
    ChangeRetention,
    CoreKeyView,
    CreateIntegration,
    IntegrationPage,
    IntegrationWithSecret,
    RenameIntegration,
    RetentionView,
    with_secret_view,
)
from soundmark.core.problems import AudienceUnavailable, ProjectNotFound, ResourceDeletionInProgress
from soundmark.core.views.integrations import IntegrationView, integration_view
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor
from soundmark.wire.private.problems import (
    EntitlementRequired,
    IntegrationNotFound,
    IntegrationRevoked,
    OrganizationSuspended,
)

operations = Operations("Audience")

ProjectQuery = Annotated[ResourceId, Query(description="The project of the integration.")]
IntegrationIdPath = Annotated[
    ResourceId, Path(description="The integration's id.", examples=["int_c3R1ZGlvLW1lYXN1cmVtZW50"])
]


async def _target(integration_id: IntegrationIdPath, project_id: ProjectQuery) -> integration.Target:
    return integration.Target(project_id, integration_id)


Target = Annotated[integration.Target, Depends(_target)]
_LIFECYCLE = (ProjectNotFound, IntegrationNotFound, ResourceDeletionInProgress, AudienceUnavailable)


@operations.add(
    "POST",
    "/v1/audience/integrations",
    Operation(
        "audience.create",
        tenant="body",
        problems=(
            ProjectNotFound,
            EntitlementRequired,
            ResourceDeletionInProgress,
            OrganizationSuspended,
            AudienceUnavailable,
        ),
    ),
    status=HTTPStatus.CREATED,
    example=with_secret_view(example.CREATED),
)
async def create_integration(
    ctx: Ctx,
    request_id: RequestId,
    scope: Tenant,
    body: CreateIntegration,
) -> IntegrationWithSecret:
    """Create an integration. Its HMAC secret is returned only in this response."""
    new = service.NewIntegration(body.project_id, body.mode, body.retention_days, body.name)
    return with_secret_view(await service.create_integration(ctx, scope, new, request_id=request_id))


@operations.add(
    "GET",
    "/v1/audience/integrations",
    Operation("audience.list", problems=(ProjectNotFound, InvalidCursor, AudienceUnavailable)),
    example=IntegrationPage(data=[integration_view(example.DESCRIBED)], next_cursor=None),
)
async def list_integrations(
    ctx: Ctx,
    request_id: RequestId,
    scope: Tenant,
    project_id: Annotated[ResourceId, Query(description="The project whose integrations are listed.")],
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> IntegrationPage:
    """List the integrations of a project, newest first, including revoked ones."""
    cursors = ctx.cursors.bind("integrations", organization_id=scope.organization_id, project_id=project_id)
    page = await service.list_integrations(
        ctx, scope, project_id, before=cursors.read(cursor), limit=limit, request_id=request_id
    )
    return cursors.show(IntegrationPage, page, integration_view)


@operations.add(
    "PATCH",
    "/v1/audience/integrations/{integration_id}",
    Operation("audience.rename", problems=(ProjectNotFound, IntegrationNotFound, AudienceUnavailable)),
    example=integration_view(example.DESCRIBED),
)
async def rename_integration(
    ctx: Ctx,
    request_id: RequestId,
    scope: Tenant,
    target: Target,
    body: RenameIntegration,
) -> IntegrationView:
    """Rename an integration, regardless of its status; null removes the name."""
    return integration_view(await names.rename_integration(ctx, scope, target, name=body.name, request_id=request_id))


@operations.add(
    "POST",
    "/v1/audience/integrations/{integration_id}/revoke",
    Operation("audience.revoke", problems=(*_LIFECYCLE,)),
    example=integration_view(example.REVOKED),
)
async def revoke_integration(
    ctx: Ctx,
    request_id: RequestId,
    scope: Tenant,
    target: Target,
) -> IntegrationView:
    """Revoke an integration. It records no more events; recorded events stay in reports until their retention ends."""
    return integration_view(await service.revoke_integration(ctx, scope, target, request_id=request_id))


@operations.add(
    "POST",
    "/v1/audience/integrations/{integration_id}/secret",
    Operation("audience.rotate_secret", problems=(*_LIFECYCLE, IntegrationRevoked)),
    example=with_secret_view(example.ROTATED),
)
async def rotate_integration_secret(
    ctx: Ctx,
    request_id: RequestId,
    scope: Tenant,
    target: Target,
) -> IntegrationWithSecret:
    """Rotate an integration's HMAC secret. The old secret stops working; only this response has the new one."""
    return with_secret_view(await service.rotate_secret(ctx, scope, target, request_id=request_id))


@operations.add(
    "PATCH",
    "/v1/audience/integrations/{integration_id}/retention",
    Operation("audience.change_retention", problems=(*_LIFECYCLE, IntegrationRevoked, EntitlementRequired)),
    example=RetentionView.from_record(example.RETENTION),
)
async def change_integration_retention(
    ctx: Ctx,
    request_id: RequestId,
    scope: Tenant,
    target: Target,
    body: ChangeRetention,
) -> RetentionView:
    """Change how long an integration keeps its events. Events beyond a shorter retention are deleted immediately."""
    changed = await service.change_retention(
        ctx, scope, target, retention_days=body.retention_days, request_id=request_id
    )
    return RetentionView.from_record(changed)


@operations.add(
    "POST",
    "/v1/audience/integrations/{integration_id}/core-key",
    Operation("audience.replace_core_key", problems=(*_LIFECYCLE, IntegrationRevoked)),
    example=CoreKeyView.from_record(example.CORE_KEY),
)
async def replace_integration_core_key(
    ctx: Ctx,
    request_id: RequestId,
    scope: Tenant,
    target: Target,
) -> CoreKeyView:
    """Make an integration trust Core's current signing key. A key rotation does this automatically."""
    return CoreKeyView.from_record(await service.replace_core_key(ctx, scope, target, request_id=request_id))
