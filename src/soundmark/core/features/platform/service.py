"""Commands on platform settings.

They happen in no organisation, so no tenant's audit log tells of them; the log of the process does, without values.
"""

import json
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.platform import ConfigurationName, Effective, SecretName, SecretStatus, Value
from soundmark.core.domain.scope import User
from soundmark.core.store import platform_settings
from soundmark.kit.secret import Secret

_log: Final = structlog.get_logger()


async def put_secret(ctx: Context, user: User, name: SecretName, value: Secret) -> SecretStatus:
    """The credential holds from the commit on, in every process.

    Source: API v1, "Platform settings".
    """
    sealed = ctx.configuration.seal(name, value)
    async with ctx.db.transaction() as tx:
        now = ctx.clock.now()
        await platform_settings.put_secret(tx, name, sealed=sealed, now=now)
    _log.info("platform_secret_changed", name=name, subject_id=user.subject_id)
    return SecretStatus(is_configured=True, updated_at=now)


async def put_configuration(ctx: Context, user: User, name: ConfigurationName, value: Value | None) -> Effective:
    """The override holds from the commit on, in every process; None removes it. The answer is what holds then.

    Source: API v1, "Platform settings"; contract, section 7.
    """
    async with ctx.db.transaction() as tx:
        if value is None:
            await platform_settings.delete_value(tx, name)
        else:
            await platform_settings.put_value(tx, name, value=json.dumps(value), now=ctx.clock.now())
    _log.info("platform_configuration_changed", name=name, is_override=value is not None, subject_id=user.subject_id)
    return (await ctx.configuration.everything()).values[name]
