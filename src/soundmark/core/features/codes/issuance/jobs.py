"""The job that deletes receipts of issuances after a day."""

from typing import Final

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.codes.receipt import KEPT
from soundmark.core.store.codes import issuance_receipts
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.jobs import add_periodic

_AT_ONCE: Final = 500  # Keeps transactions short: a receipt holds the response for at most a hundred Codes.


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` delete old receipts."""
    add_periodic(app, ctx, "forget_receipts", "43 * * * *", forget_receipts)


async def forget_receipts(ctx: Context) -> int:
    """Delete receipts that are more than a day old; return how many. Safe at any time and concurrently.

    Receipts of that age are ignored anyway. Deleting them only keeps them from piling up.

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
