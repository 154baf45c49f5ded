"""Commands on platform settings.

They belong to no organisation, so the process log records them instead of a tenant's audit log, without their values.
"""

import json
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.platform.settings import EffectiveSetting, SecretStatus
from soundmark.core.domain.tenancy.scope import User
from soundmark.core.store.platform import settings as platform_settings
from soundmark.kit.crypto.secret import Secret
from soundmark.settings.registry import Value

_log: Final = structlog.get_logger()


async def put_secret(ctx: Context, user: User, name: str, value: Secret) -> SecretStatus:
    """Rotate a credential. Every process uses the new one from the commit on.

    Source: API v1, "Platform settings".
    """
    sealed = ctx.platform_settings.seal(name, value)
    async with ctx.db.transaction() as tx:
        now = ctx.clock.now()
        await platform_settings.insert_or_update_secret(tx, name, sealed=sealed, now=now)
    _log.info("platform_secret_changed", name=name, subject_id=user.subject_id)
    return SecretStatus(is_configured=True, updated_at=now)


async def put_configuration(ctx: Context, user: User, name: str, value: Value | None) -> EffectiveSetting:
    """Override a setting, or remove the override with None, and return the effective value.

    Every process uses it from the commit on.

    Source: API v1, "Platform settings"; contract, section 7.
    """
    async with ctx.db.transaction() as tx:
        if value is None:
            await platform_settings.delete_value(tx, name)
        else:
            await platform_settings.insert_or_update_value(tx, name, value=json.dumps(value), now=ctx.clock.now())
    _log.info("platform_configuration_changed", name=name, is_override=value is not None, subject_id=user.subject_id)
    return (await ctx.platform_settings.list_all()).configuration[name]
