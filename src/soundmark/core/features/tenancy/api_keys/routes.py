"""The routes of API keys."""

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Path, Query

from soundmark.core.edge.examples import API_KEY, ISSUED_AT, LATER
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, CursorText, Limit, Tenant
from soundmark.core.features.tenancy.api_keys import service
from soundmark.core.features.tenancy.api_keys.wire import (
    ApiKeyPage,
    ApiKeyWithSecret,
    CreateApiKey,
    RenameApiKey,
    api_key_with_secret,
)
from soundmark.core.problems import ApiKeyNotActive, ApiKeyNotFound, ProjectNotFound, ResourceDeletionInProgress
from soundmark.core.views.tenancy import ApiKeyView, api_key_view
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor
from soundmark.wire.private.problems import OrganizationSuspended

operations = Operations("API keys")

_EXAMPLE_SECRET: Final = Secret("xak_" + "ZXhhbXBsZS1vZi1hLXNlY3JldC10aGF0LW9wZW5zLW4")

ApiKeyIdPath = Annotated[ResourceId, Path(description="The key's id.", examples=["key_cGxheW91dC1zZXJ2ZXItZX"])]


@operations.add(
    "POST",
    "/v1/api-keys",
    Operation(
        "api_key.create", tenant="body", problems=(ProjectNotFound, ResourceDeletionInProgress, OrganizationSuspended)
    ),
    status=HTTPStatus.CREATED,
    example=api_key_with_secret(API_KEY, _EXAMPLE_SECRET, ISSUED_AT),
)
async def create_api_key(ctx: Ctx, scope: Tenant, body: CreateApiKey) -> ApiKeyWithSecret:
    """Create an API key for one project. Its secret is returned only in this response."""
    key, secret = await service.create_api_key(
        ctx,
        scope,
        project_id=body.project_id,
        name=body.name,
        scopes=body.scopes,
        lifetime_days=body.expires_in_days,
    )
    return api_key_with_secret(key, secret, key.created_at)


@operations.add(
    "GET",
    "/v1/api-keys",
    Operation("api_key.list", problems=(ProjectNotFound, InvalidCursor)),
    example=ApiKeyPage(data=[api_key_view(API_KEY, ISSUED_AT)], next_cursor=None),
)
async def list_api_keys(
    ctx: Ctx,
    scope: Tenant,
    project_id: Annotated[
        ResourceId | None, Query(description="Only keys of this project. Default: all projects.")
    ] = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> ApiKeyPage:
    """List the API keys of an organisation or of one of its projects, newest first, regardless of status."""
    cursors = ctx.cursors.bind("api_keys", organization_id=scope.organization_id, project_id=project_id)
    page, now = await service.list_api_keys(ctx, scope, project_id=project_id, before=cursors.read(cursor), limit=limit)
    return cursors.show(ApiKeyPage, page, lambda key: api_key_view(key, now))


@operations.add(
    "PATCH",
    "/v1/api-keys/{api_key_id}",
    Operation("api_key.rename", problems=(ApiKeyNotFound,)),
    example=api_key_view(API_KEY, ISSUED_AT),
)
async def rename_api_key(ctx: Ctx, scope: Tenant, api_key_id: ApiKeyIdPath, body: RenameApiKey) -> ApiKeyView:
    """Rename an API key, regardless of its status; null removes the name."""
    key, now = await service.rename_api_key(ctx, scope, api_key_id, name=body.name)
    return api_key_view(key, now)


@operations.add(
    "POST",
    "/v1/api-keys/{api_key_id}/revoke",
    Operation("api_key.revoke", problems=(ApiKeyNotFound,)),
    example=api_key_view(replace(API_KEY, revoked_at=LATER), LATER),
)
async def revoke_api_key(ctx: Ctx, scope: Tenant, api_key_id: ApiKeyIdPath) -> ApiKeyView:
    """Revoke an API key. No request that starts after the response can use it.

    A key that is already revoked or expired is returned unchanged.
    """
    key, now = await service.revoke_api_key(ctx, scope, api_key_id)
    return api_key_view(key, now)


@operations.add(
    "POST",
    "/v1/api-keys/{api_key_id}/secret",
    Operation("api_key.rotate", problems=(ApiKeyNotFound, ApiKeyNotActive)),
    example=api_key_with_secret(replace(API_KEY, secret_rotated_at=LATER), _EXAMPLE_SECRET, LATER),
)
async def rotate_api_key_secret(ctx: Ctx, scope: Tenant, api_key_id: ApiKeyIdPath) -> ApiKeyWithSecret:
    """Rotate the secret of an active API key. The old secret stops working; only this response has the new one."""
    key, secret, now = await service.rotate_secret(ctx, scope, api_key_id)
    return api_key_with_secret(key, secret, now)
