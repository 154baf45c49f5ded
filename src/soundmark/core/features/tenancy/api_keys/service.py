"""Commands on API keys."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from soundmark.core.access.credentials import KEY_PREFIX
from soundmark.core.access.server_keys import digest_of_secret
from soundmark.core.context import Context
from soundmark.core.domain.tenancy.api_key import ApiKey
from soundmark.core.domain.tenancy.scope import KeyScope, TenantScope
from soundmark.core.problems import ApiKeyNotActive, ApiKeyNotFound
from soundmark.core.steps import audit
from soundmark.core.steps.tenancy import hold_active_project, hold_authority, require_project
from soundmark.core.store.tenancy import api_keys
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint, mint_secret
from soundmark.kit.text.paging import Page, Position, cut_page


async def create_api_key(
    ctx: Context,
    scope: TenantScope,
    *,
    project_id: str,
    name: str | None,
    scopes: Sequence[KeyScope],
    lifetime_days: int,
) -> tuple[ApiKey, Secret]:
    """Create an API key of the project, and return its secret, which is stored nowhere.

    Raises: ProjectNotFound; ResourceDeletionInProgress.
    Source: API v1, "Server API keys".
    """
    key_id, secret = mint(ctx.entropy, "key_"), Secret(mint_secret(ctx.entropy, KEY_PREFIX))
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_active_project(tx, scope, project_id)
        now = ctx.clock.now()
        key = ApiKey(
            id=key_id,
            organization_id=scope.organization_id,
            project_id=project_id,
            name=name,
            scopes=sorted(scopes),
            created_at=now,
            expires_at=now + timedelta(days=lifetime_days),
            last_used_at=None,
            secret_rotated_at=None,
            revoked_at=None,
        )
        await api_keys.insert(tx, scope, key)
        await api_keys.insert_digest(tx, scope, key_id, digest=digest_of_secret(secret.reveal()))
        await audit.record(
            tx,
            scope,
            ctx.entropy,
            "api_key.created",
            now=now,
            project_id=project_id,
            api_key_id=key_id,
            scopes=key.scopes,
            expires_in_days=lifetime_days,
        )
    return key, secret


async def list_api_keys(
    ctx: Context, scope: TenantScope, *, project_id: str | None, before: Position | None, limit: int
) -> tuple[Page[ApiKey], datetime]:
    """Return the keys of the organisation or of one project, newest first, and the moment at which to judge them.

    Raises: ProjectNotFound if the filter names no project of the organisation.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        if project_id is not None:
            await require_project(tx, scope, project_id)
        rows = await api_keys.list_newest_first(tx, scope, project_id=project_id, before=before, limit=limit + 1)
    return cut_page(rows, limit, lambda row: Position(row.created_at, row.id)), ctx.clock.now()


async def rename_api_key(
    ctx: Context, scope: TenantScope, api_key_id: str, *, name: str | None
) -> tuple[ApiKey, datetime]:
    """Change the key's name, whatever its status, and return it with the moment at which its state was judged.

    None removes the name. The name that the key has already changes nothing, and is not audited.

    Raises: ApiKeyNotFound.
    Source: contract, section 3.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        key = await _lock(tx, scope, api_key_id)
        now = ctx.clock.now()
        if name != key.name:
            await api_keys.update_name(tx, scope, key.id, name=name)
            await audit.record(
                tx, scope, ctx.entropy, "api_key.renamed", now=now, project_id=key.project_id, api_key_id=key.id
            )
            key = replace(key, name=name)
    return key, now


async def revoke_api_key(ctx: Context, scope: TenantScope, api_key_id: str) -> tuple[ApiKey, datetime]:
    """Revoke the key, and return it with the moment at which its state was judged.

    No request that starts afterwards is accepted with it, and no transaction under way commits with it. A revoked or
    expired key is returned unchanged.

    Raises: ApiKeyNotFound.
    Source: API v1, "States and transitions", Server API key.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        key = await _lock(tx, scope, api_key_id)
        now = ctx.clock.now()  # Read after the lock wait, so that expiry is judged when we act.
        if key.status(now) == "active":
            await api_keys.update_revoked(tx, scope, key.id, now=now)
            await audit.record(
                tx, scope, ctx.entropy, "api_key.revoked", now=now, project_id=key.project_id, api_key_id=key.id
            )
            key = replace(key, revoked_at=now)
    return key, now


async def rotate_secret(ctx: Context, scope: TenantScope, api_key_id: str) -> tuple[ApiKey, Secret, datetime]:
    """Rotate the key's secret; id, project, scopes and expiry stay. The old secret is void in every process.

    Raises: ApiKeyNotFound; ApiKeyNotActive.
    Source: API v1, "States and transitions", Server API key.
    """
    secret = Secret(mint_secret(ctx.entropy, KEY_PREFIX))
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        key = await _lock(tx, scope, api_key_id)
        now = ctx.clock.now()  # Read after the lock wait, so that expiry is judged when we act.
        if key.status(now) != "active":
            raise ApiKeyNotActive
        await api_keys.update_digest(tx, scope, key.id, digest=digest_of_secret(secret.reveal()))
        await api_keys.update_secret_rotated(tx, scope, key.id, now=now)
        await audit.record(
            tx, scope, ctx.entropy, "api_key.secret_rotated", now=now, project_id=key.project_id, api_key_id=key.id
        )
    return replace(key, secret_rotated_at=now), secret, now


async def _lock(tx: Tx, scope: TenantScope, api_key_id: str) -> ApiKey:
    key = await api_keys.lock(tx, scope, api_key_id)
    if key is None:
        raise ApiKeyNotFound
    return key
