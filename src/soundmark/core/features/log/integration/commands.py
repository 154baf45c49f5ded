"""An operator's commands on a log that is stopped."""

from soundmark.core.context import Context
from soundmark.core.features.log.integration.keys import LogRefused, require_log
from soundmark.core.features.log.integration.opening import renew_log
from soundmark.core.store.log import state
from soundmark.kit.crypto.signed_notes import VerifierKey


async def renew(ctx: Context, origin: str) -> VerifierKey:
    """Put a new log in the place of a stopped one; return its key.

    Raises: LogRefused unless the log is stopped and the origin is another.
    """
    async with ctx.db.transaction() as tx:
        log = await require_log(tx)
    if log.stopped_reason is None:
        raise LogRefused("the log is not stopped; only a stopped log can be replaced")
    if log.origin == origin:
        raise LogRefused(f"the log that is stopped is {origin}; a new log needs another origin")
    await renew_log(ctx, origin)
    async with ctx.db.transaction() as tx:
        (key,) = await state.list_keys(tx)
    return key.verifier(origin)


async def resume(ctx: Context) -> None:
    """Let a restored log go on.

    Raises: LogRefused unless the log is stopped because it was restored.
    """
    async with ctx.db.transaction() as tx:
        log = await require_log(tx)
        if log.stopped_reason != "restored":
            raise LogRefused("only a log that was restored may go on; `soundmark log renew` begins another")
        await state.update_stopped(tx, None)
