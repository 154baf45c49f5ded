"""Core's keys in Audience."""

from soundmark.core.context import Context
from soundmark.core.store.codes import signing_keys


async def request_push(ctx: Context, key_id: str | None = None) -> None:
    """Have the worker give a key to every integration again; by default the key that Core signs with.

    An integration may have missed it: a rotation went by while the integration was being given another key.

    Raises: DatabaseUnavailable.
    """
    async with ctx.db.transaction() as tx:
        for record in await signing_keys.lock_all(tx):
            if record.key_id == key_id or (key_id is None and record.status == "active"):
                await signing_keys.update_pushed(tx, record.key_id, pushed_at=None)
