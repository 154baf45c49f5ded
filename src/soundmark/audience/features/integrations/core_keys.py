"""Core's signing key, which every integration trusts."""

from soundmark.audience.context import Context
from soundmark.audience.domain.integration import PREVIOUS_KEY_KEPT, TrustedKey
from soundmark.audience.store import integrations
from soundmark.wire.private.integrations import TrustEverywhereRequest, TrustEverywhereResponse


async def trust_everywhere(ctx: Context, request: TrustEverywhereRequest) -> TrustEverywhereResponse:
    """Make the next integrations that are not revoked, by id, trust the key of the request.

    Each trusts its previous key for seven more minutes. An integration that already trusts the key stays as it is, so
    that an interrupted rotation can start again. If its previous key is the one that `still_signs`, the seven minutes
    start again: they cover what that key signs until it is replaced.

    Source: API v1, "Audience measurement event", 8.
    """
    async with ctx.db.transaction() as tx:
        ids = await integrations.lock_unrevoked(tx, after=request.after, limit=request.limit)
        # Read after taking the locks, because the seven minutes begin when the key is in place.
        previous_until = ctx.clock.now() + PREVIOUS_KEY_KEPT
        await integrations.update_core_key(tx, ids, TrustedKey.from_shape(request), previous_until=previous_until)
        if request.still_signs is not None:
            await integrations.update_previous_until(tx, ids, request.still_signs, previous_until=previous_until)
    return TrustEverywhereResponse(data=ids, next=ids[-1] if len(ids) == request.limit else None)
