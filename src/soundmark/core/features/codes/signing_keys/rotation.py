"""Rotation of the signing key. Audience receives the new key before it signs, so that no valid event is rejected.

An integration trusts one Core key and, for seven minutes after it is replaced, the previous one. Proofs live for five
minutes, and the old key keeps signing until the new one is active. So once the first integration has received the new
key, two minutes remain to send it to all others and to activate it. A rotation that began must therefore be completed;
the worker completes one that was interrupted (`jobs`). Sending the key again starts the seven minutes of the old key
again.
"""

from collections.abc import Callable
from datetime import datetime

from soundmark.core.context import Context
from soundmark.core.domain.codes.signing_key import SigningKeyRecord
from soundmark.core.features.codes.signing_keys import service
from soundmark.core.features.codes.signing_keys.service import PROOFS_GONE_AFTER, KeyRefused
from soundmark.core.live.keyring import unseal_key
from soundmark.core.problems import AudienceUnavailable
from soundmark.core.store.codes import signing_keys
from soundmark.wire.private.parts import CoreKey


async def put_in_place(
    ctx: Context, key_id: str, *, must_reach_audience: bool = True, tell: Callable[[int], None] | None = None
) -> bool:
    """Make a key the signing key, and every integration trust it; return whether Audience received it.

    1. Mark the key's row: its push to Audience has begun. From then on, new integrations receive this key.
    2. Push the key to every integration of every cell, in steps. `tell` gets the count so far.
    3. Activate the key, and mark its row: all integrations have received it.

    Every phase can be repeated, so an interrupted rotation is continued by calling this again. If Audience is
    unavailable, nothing is activated, unless `must_reach_audience` is false: then the worker pushes the key later. A
    rotation cannot begin while proofs of a recently replaced key are valid, because Audience would stop trusting that
    key.

    Raises: KeyRefused; DatabaseUnavailable; kit.crypto.sealing.SealBroken.
    Source: API v1, "Audience measurement event", 8.
    """
    key, still_signs = await _begin(ctx, key_id, is_urgent=not must_reach_audience)
    is_pushed = key is not None
    try:
        if key is not None:
            await _push_everywhere(ctx, key, still_signs, tell)
    except AudienceUnavailable:
        if must_reach_audience:
            raise KeyRefused(
                f"Audience does not answer, so {key_id} does not sign yet; run this again, or let the worker finish"
            ) from None
        is_pushed = False
    await service.activate(ctx, key_id)
    if is_pushed:
        await _note_pushed(ctx, key_id)
    return is_pushed


async def push_missing(ctx: Context) -> None:
    """Complete a rotation that began, and push the active key to Audience if necessary. Safe at any time.

    Raises: KeyRefused while Audience is unavailable; DatabaseUnavailable; kit.crypto.sealing.SealBroken.
    """
    for record in await service.list_keys(ctx):
        is_begun = record.status == "next" and record.push_began_at is not None
        if is_begun or (record.status == "active" and record.pushed_at is None):
            await put_in_place(ctx, record.key_id)


async def find_last_proof_end(ctx: Context) -> datetime | None:
    """Return when the last proof of a replaced key expires; None if no key was ever replaced."""
    moments = [record.superseded_at for record in await service.list_keys(ctx) if record.superseded_at is not None]
    return max(moments) + PROOFS_GONE_AFTER if moments else None


async def _begin(ctx: Context, key_id: str, *, is_urgent: bool) -> tuple[CoreKey | None, str | None]:
    """Carry out phase 1. Return the key to push, None if all have it; and the id of the key that signs until then.

    The second is None if the key already signs.

    Raises: KeyRefused.
    """
    async with ctx.db.transaction() as tx:
        records = await signing_keys.lock_all(tx)
        record = _pick_staged(records, key_id)
        if record.status == "active" and record.pushed_at is not None:
            return None, None
        if record.push_began_at is None and not is_urgent:
            _require_calm(records, ctx.clock.now())
        await signing_keys.update_push_began(tx, key_id, now=ctx.clock.now())
    # Derived from the secret half: somebody who can write to the database cannot make Audience trust a key of theirs.
    key = CoreKey.from_bytes(key_id, unseal_key(record, ctx.sealer).public_key)
    active = next((each.key_id for each in records if each.status == "active"), None)
    return key, None if active == key_id else active


def _require_calm(records: list[SigningKeyRecord], now: datetime) -> None:
    """Refuse to begin while proofs of a replaced key are still valid.

    Raises: KeyRefused.
    """
    for record in records:
        if record.superseded_at is not None and now < record.superseded_at + PROOFS_GONE_AFTER:
            raise KeyRefused(f"{record.key_id} signed proofs a moment ago; try again in six minutes")


async def _push_everywhere(
    ctx: Context, key: CoreKey, still_signs: str | None, tell: Callable[[int], None] | None
) -> None:
    """Push the key to all cells, one after the other.

    Raises: AudienceUnavailable if one is away. The others have the key then, and trust the one that signs for seven
        minutes; pushing again begins them again.
    """
    count = 0
    for audience in ctx.cells.open_all():

        def add(pushed_count: int, before: int = count) -> None:
            if tell is not None:
                tell(before + pushed_count)

        count += await audience.push_everywhere(
            key, still_signs=still_signs, request_id=f"rotate-{key.key_id}", tell=add
        )


async def _note_pushed(ctx: Context, key_id: str) -> None:
    async with ctx.db.transaction() as tx:
        await signing_keys.lock_all(tx)
        await signing_keys.update_pushed(tx, key_id, pushed_at=ctx.clock.now())


def _pick_staged(records: list[SigningKeyRecord], key_id: str) -> SigningKeyRecord:
    record = service.pick(records, key_id)
    if record.status not in {"next", "active"}:
        raise KeyRefused(f"{key_id} is {record.status}; only a staged key can be activated")
    return record
