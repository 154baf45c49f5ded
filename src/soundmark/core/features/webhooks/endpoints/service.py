"""Commands on webhook endpoints."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypedDict

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.audit import AuditAction
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.endpoint import EARLIER_SECRET_FOR, ENDPOINT_PREFIX, ENDPOINTS_MAX, Endpoint
from soundmark.core.problems import WebhookEndpointNotFound
from soundmark.core.steps import audit
from soundmark.core.steps.tenancy import hold_authority, hold_open_organization, hold_open_project
from soundmark.core.steps.webhook_secrets import mint_webhook_secret, seal_earlier, seal_secret
from soundmark.core.store.webhooks import endpoints
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.outbound.public_url import judge_url
from soundmark.kit.http.responses.problems import FieldError, ValidationFailed
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint
from soundmark.kit.text.paging import Page, Position, cut_page

_TOO_MANY: Final = f"An organisation can have {ENDPOINTS_MAX} webhook endpoints. Delete one first."


@dataclass(frozen=True, slots=True)
class NewEndpoint:
    """The endpoint that a caller wants to create."""

    project_id: str | None
    url: str
    event_types: Sequence[str] | None
    description: str | None


class EndpointChanges(TypedDict, total=False):
    """The members to change; absent ones stay, and None sends all event types or clears the description."""

    url: str
    event_types: Sequence[str] | None
    description: str | None
    enabled: bool


async def create_endpoint(ctx: Context, scope: TenantScope, new: NewEndpoint) -> tuple[Endpoint, Secret]:
    """Create an endpoint, and return its secret, which nobody can read again.

    It gets the events of what happens from now on.

    Raises: ValidationFailed for a URL that we send nothing to, and for one endpoint too many; ProjectNotFound;
        ResourceDeletionInProgress.
    Source: contract, section 9.
    """
    _require_public(ctx, new.url)
    endpoint_id, secret = mint(ctx.entropy, ENDPOINT_PREFIX), mint_webhook_secret(ctx.entropy)
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        if new.project_id is None:
            await hold_open_organization(tx, scope)
        else:
            await hold_open_project(tx, scope, new.project_id)
        await endpoints.lock_number(tx, scope)
        if await endpoints.count(tx, scope) >= ENDPOINTS_MAX:
            raise ValidationFailed(_TOO_MANY)
        endpoint = Endpoint(
            organization_id=scope.organization_id,
            id=endpoint_id,
            project_id=new.project_id,
            url=new.url,
            event_types=new.event_types,
            description=new.description,
            enabled=True,
            disabled_reason=None,
            created_at=ctx.clock.now(),
        )
        await endpoints.insert(tx, endpoint, sealed_secret=seal_secret(ctx.sealer, endpoint_id, secret))
        await _record(ctx, tx, scope, "webhook_endpoint.created", endpoint, event_types=endpoint.event_types)
    return endpoint, secret


async def list_endpoints(ctx: Context, scope: TenantScope, *, before: Position | None, limit: int) -> Page[Endpoint]:
    """Return the endpoints of the organisation, newest first."""
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        rows = await endpoints.list_newest_first(tx, scope, before=before, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(row.created_at, row.id))


async def get_endpoint(ctx: Context, scope: TenantScope, endpoint_id: str) -> Endpoint:
    """Return one endpoint.

    Raises: WebhookEndpointNotFound.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        endpoint = await endpoints.find(tx, scope, endpoint_id)
    if endpoint is None:
        raise WebhookEndpointNotFound
    return endpoint


async def update_endpoint(ctx: Context, scope: TenantScope, endpoint_id: str, changes: EndpointChanges) -> Endpoint:
    """Change an endpoint. Deliveries that wait are sent to the new URL.

    Enabling it forgets the failures for which the service disabled it.

    Raises: ValidationFailed for a URL that we send nothing to; WebhookEndpointNotFound.
    Source: contract, section 9.
    """
    if "url" in changes:
        _require_public(ctx, changes["url"])
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        endpoint = await _lock(tx, scope, endpoint_id)
        updated = replace(endpoint, **changes)
        is_enabling = changes.get("enabled", False)
        if is_enabling:
            updated = replace(updated, disabled_reason=None)
        await endpoints.update(tx, updated, forgets_failures=is_enabling)
        await _record(
            ctx,
            tx,
            scope,
            "webhook_endpoint.updated",
            updated,
            changed=sorted(changes),
            event_types=updated.event_types,
            enabled=updated.enabled,
        )
    return updated


async def delete_endpoint(ctx: Context, scope: TenantScope, endpoint_id: str) -> None:
    """Delete an endpoint: what waits is not sent, but a request under way is finished.

    Raises: WebhookEndpointNotFound.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        endpoint = await _lock(tx, scope, endpoint_id)
        await endpoints.delete(tx, scope, endpoint_id)
        await _record(ctx, tx, scope, "webhook_endpoint.deleted", endpoint)


async def rotate_secret(ctx: Context, scope: TenantScope, endpoint_id: str) -> tuple[Endpoint, Secret]:
    """Rotate the endpoint's secret. The one before signs beside it for a day; one before that signs no more.

    Raises: WebhookEndpointNotFound.
    Source: contract, section 9; Standard Webhooks, "Zero downtime secret rotation".
    """
    secret = mint_webhook_secret(ctx.entropy)
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        endpoint = await _lock(tx, scope, endpoint_id)
        present = await endpoints.find_sealed_secret(tx, scope, endpoint_id)
        await endpoints.update_secret(
            tx,
            scope,
            endpoint_id,
            sealed_secret=seal_secret(ctx.sealer, endpoint_id, secret),
            sealed_earlier_secret=seal_earlier(ctx.sealer, endpoint_id, present),
            earlier_secret_until=ctx.clock.now() + EARLIER_SECRET_FOR,
        )
        await _record(ctx, tx, scope, "webhook_endpoint.secret_rotated", endpoint)
    return endpoint, secret


async def _lock(tx: Tx, scope: TenantScope, endpoint_id: str) -> Endpoint:
    endpoint = await endpoints.lock(tx, scope, endpoint_id)
    if endpoint is None:
        raise WebhookEndpointNotFound
    return endpoint


def _require_public(ctx: Context, url: str) -> None:
    try:
        judge_url(url, allow_loopback=ctx.webhook_allow_loopback)
    except ValueError as error:
        raise ValidationFailed(errors=(FieldError("body", "/url", str(error)),)) from None


async def _record(
    ctx: Context, tx: Tx, scope: TenantScope, action: AuditAction, endpoint: Endpoint, **facts: Any
) -> None:
    """Record a change. The URL is left out, because its path or query may hold a token of the consumer's."""
    await audit.record(
        tx,
        scope,
        ctx.entropy,
        action,
        now=ctx.clock.now(),
        project_id=endpoint.project_id,
        endpoint_id=endpoint.id,
        **facts,
    )
