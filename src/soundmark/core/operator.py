"""The composition root of operators' commands, which use Core's database from the command line."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from soundmark.core.context import Context
from soundmark.core.wiring import WiredSettings, make_context
from soundmark.kit.postgres.schema_version import require_current

_POOL_SIZE: Final = 2  # A command does one thing at a time.


@contextlib.asynccontextmanager
async def open_context(settings: WiredSettings, name: str) -> AsyncIterator[Context]:
    """Yield the context of a command, with an open database that has the schema of this release.

    Its connections are called `soundmark-<name>` in PostgreSQL.

    Raises: DatabaseUnavailable; SchemaOutdated.
    """
    ctx = make_context(settings, application_name=f"soundmark-{name}", pool_size=_POOL_SIZE)
    async with contextlib.AsyncExitStack() as stack:
        await ctx.db.open()
        stack.push_async_callback(ctx.db.close)
        stack.push_async_callback(ctx.cells.aclose)
        stack.push_async_callback(ctx.accounting.aclose)
        stack.push_async_callback(ctx.webhooks.aclose)
        await require_current(ctx.db, "soundmark.core")
        yield ctx
