"""The root of operators' commands, which act on Core's database from the command line."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from soundmark.core.context import Context
from soundmark.core.wiring import WiredSettings, make_context
from soundmark.kit.postgres.schema_version import require_current

_POOL_SIZE: Final = 2  # A command does one thing after the other.


@contextlib.asynccontextmanager
async def open_context(settings: WiredSettings, name: str) -> AsyncIterator[Context]:
    """Yield what a command reaches, on an open database that has the schema of this release.

    PostgreSQL knows its connections as `soundmark-<name>`.

    Raises: DatabaseUnavailable; SchemaOutdated.
    """
    ctx = make_context(settings, application_name=f"soundmark-{name}", pool_size=_POOL_SIZE)
    async with contextlib.AsyncExitStack() as stack:
        await ctx.db.open()
        stack.push_async_callback(ctx.db.close)
        stack.push_async_callback(ctx.audience.aclose)
        await require_current(ctx.db, "soundmark.core")
        yield ctx
