"""Forgetting what issuances were answered, a day later."""

from typing import Final

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.codes.receipt import KEPT
from soundmark.core.store.codes import issuance_receipts
from soundmark.kit.postgres.database import EVERY_TENANT

FORGET: Final = "forget_receipts"
_AT_ONCE: Final = 500  # A receipt holds an answer of a hundred Codes at most: no transaction is long.


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` forget receipts."""

    @app.periodic(cron="43 * * * *")
    @app.task(name=FORGET, queueing_lock=FORGET)
    async def forget(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await forget_receipts(ctx)


async def forget_receipts(ctx: Context) -> int:
    """Receipts that count no more are gone; how many they were. Safe at any time, and at once with itself.

    They are not believed from the moment on that they are a day old; this is only so that they are not kept.

    Raises: DatabaseUnavailable.
    Source: API v1, "Limits", Idempotency key.
    """
    too_old, forgotten = ctx.clock.now() - KEPT, 0
    while True:
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            count = await issuance_receipts.delete_older(tx, than=too_old, limit=_AT_ONCE)
        forgotten += count
        if count < _AT_ONCE:
            return forgotten
