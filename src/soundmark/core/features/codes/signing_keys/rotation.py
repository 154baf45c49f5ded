"""Putting another key in place without refusing a valid event: Audience is told of it before it signs.

An integration trusts one key of Core's, and for seven minutes the one before it. Proofs live for five minutes, and the
old key goes on signing until the new one is active. So from the first integration that is told on there are two minutes
for telling all others and activating: whoever began has to go on, and what is interrupted the worker finishes (`jobs`).
Whoever tells again gives the key that signs still its seven minutes anew.
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
    ctx: Context, key_id: str, *, must_be_told: bool = True, tell: Callable[[int], None] | None = None
) -> bool:
    """The key signs from now on, and every integration trusts it and, for seven minutes, the one before.

    1. The key's row says that Audience is being told. From then on new integrations are told of it, too.
    2. Every integration is told, in steps. `tell` hears how many were.
    3. The key is activated, and its row says that all were told.

    Each phase can be repeated, and what was interrupted goes on by repeating all of it. Answers whether Audience was
    told. Where it is not available nothing is activated, or, unless it `must_be_told`, the worker tells it later. It is
    not begun while proofs of a key live that was replaced a moment ago: Audience would forget it.

    Raises: KeyRefused; DatabaseUnavailable; kit.sealing.SealBroken.
    Source: API v1, "Audience measurement event", 8.
    """
    key, still_signs = await _begin(ctx, key_id, is_urgent=not must_be_told)
    is_told = key is not None
    try:
        if key is not None:
            await ctx.audience.push_everywhere(key, still_signs=still_signs, request_id=f"rotate-{key_id}", tell=tell)
    except AudienceUnavailable:
        if must_be_told:
            raise KeyRefused(
                f"Audience does not answer, so {key_id} does not sign yet; run this again, or leave it to the worker"
            ) from None
        is_told = False
    await service.activate(ctx, key_id)
    if is_told:
        await _note_pushed(ctx, key_id)
    return is_told


async def keep_told(ctx: Context) -> None:
    """A rotation that was begun is finished, and Audience knows the key that signs. Safe at any time, and repeated.

    Raises: KeyRefused while Audience is unavailable; DatabaseUnavailable; kit.sealing.SealBroken.
    """
    for record in await service.list_keys(ctx):
        is_begun = record.status == "next" and record.push_began_at is not None
        if is_begun or (record.status == "active" and record.pushed_at is None):
            await put_in_place(ctx, record.key_id)


async def calm_at(ctx: Context) -> datetime | None:
    """When no proof lives any more that was signed by a key before the one that signs; None where none was replaced."""
    moments = [record.superseded_at for record in await service.list_keys(ctx) if record.superseded_at is not None]
    return max(moments) + PROOFS_GONE_AFTER if moments else None


async def _begin(ctx: Context, key_id: str, *, is_urgent: bool) -> tuple[CoreKey | None, str | None]:
    """Phase 1; the key to tell of, None where everybody was told, and the id of the one that signs until then, if any.

    Raises: KeyRefused.
    """
    async with ctx.db.transaction() as tx:
        records = await signing_keys.lock_all(tx)
        record = _staged(records, key_id)
        if record.status == "active" and record.pushed_at is not None:
            return None, None
        if record.push_began_at is None and not is_urgent:
            _require_calm(records, ctx.clock.now())
        await signing_keys.update_push_began(tx, key_id, now=ctx.clock.now())
    # From the secret half: whoever can write to the database cannot have Audience trust a key of his own.
    key = CoreKey.from_bytes(key_id, unseal_key(record, ctx.sealer).public_key)
    active = next((each.key_id for each in records if each.status == "active"), None)
    return key, None if active == key_id else active


def _require_calm(records: list[SigningKeyRecord], now: datetime) -> None:
    """No proof lives that was signed by a key before the one that signs."""
    for record in records:
        if record.superseded_at is not None and now < record.superseded_at + PROOFS_GONE_AFTER:
            raise KeyRefused(f"{record.key_id} signed proofs until a moment ago; try again in six minutes")


async def _note_pushed(ctx: Context, key_id: str) -> None:
    async with ctx.db.transaction() as tx:
        await signing_keys.lock_all(tx)
        await signing_keys.update_pushed(tx, key_id, pushed_at=ctx.clock.now())


def _staged(records: list[SigningKeyRecord], key_id: str) -> SigningKeyRecord:
    record = service.pick(records, key_id)
    if record.status not in {"next", "active"}:
        raise KeyRefused(f"{key_id} is {record.status}; only a staged key can be activated")
    return record
