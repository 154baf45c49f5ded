"""The key that every integration trusts."""

from soundmark.audience.context import Context
from soundmark.audience.domain.integration import PREVIOUS_KEY_KEPT, TrustedKey
from soundmark.audience.store import integrations


async def trust_everywhere(
    ctx: Context, core_key: TrustedKey, *, still_signs: str | None, after: str | None, limit: int
) -> list[str]:
    """The next `limit` integrations behind `after` that are not revoked trust `core_key`; their ids, ascending.

    Each believes the key before it for seven more minutes; one that trusts it already stays as it is, so that a
    rotation which was interrupted may begin anew. Where the key before is the one that `still_signs`, it has its seven
    minutes anew: they are for what it signed until it is replaced. Fewer than `limit` are the last.

    Source: API v1, "Audience measurement event", 8.
    """
    async with ctx.db.transaction() as tx:
        ids = await integrations.lock_unrevoked(tx, after=after, limit=limit)
        # Read after the locks: the seven minutes begin when the key is there.
        previous_until = ctx.clock.now() + PREVIOUS_KEY_KEPT
        await integrations.update_core_key(tx, ids, core_key, previous_until=previous_until)
        if still_signs is not None:
            await integrations.update_previous_until(tx, ids, still_signs, previous_until=previous_until)
    return ids
