"""The log's own keys: made, replaced and retired. They sign checkpoints, and nothing else."""

from soundmark.core.context import Context
from soundmark.core.domain.log.state import LogKey, LogState
from soundmark.core.store.log import checkpoints, state
from soundmark.kit.crypto.signed_notes import ED25519, VerifierKey
from soundmark.kit.crypto.signing import SEED_BYTES, SigningKey
from soundmark.kit.postgres.transaction import Tx


class LogRefused(Exception):
    """The log is not in a state that allows the step; the message says why, for an operator."""


async def insert_new_key(ctx: Context, tx: Tx, origin: str) -> LogKey:
    """Make a key of the locked log, which signs from the next checkpoint on."""
    seed = ctx.entropy.take(SEED_BYTES)
    public_key = SigningKey.from_seed("", seed).public_key
    key_id = VerifierKey(origin, ED25519, public_key).id.hex()
    sealed = ctx.sealer.seal(seed, table="log_keys", column="sealed_seed", row=key_id)
    key = LogKey(key_id, public_key, sealed, ctx.clock.now(), None)
    await state.insert_key(tx, key)
    return key


async def read_signers(ctx: Context, tx: Tx) -> list[SigningKey]:
    """Return the keys that sign, the newest first.

    Raises: kit.crypto.sealing.SealBroken if they were sealed under another master key.
    """
    return [
        SigningKey.from_seed(
            key.id, ctx.sealer.unseal(key.sealed_seed, table="log_keys", column="sealed_seed", row=key.id)
        )
        for key in await state.list_keys(tx)
        if key.sealed_seed is not None
    ]


async def rotate_key(ctx: Context) -> VerifierKey:
    """Make a key that signs beside the others from the next checkpoint on.

    Raises: LogRefused before Core's first start.
    """
    async with ctx.db.transaction() as tx:
        log = await require_log(tx)
        key = await insert_new_key(ctx, tx, log.origin)
    return key.verifier(log.origin)


async def retire_key(ctx: Context, key_id: str) -> None:
    """Destroy the secret half of a key that another one has replaced. Repeating it changes nothing.

    Raises: LogRefused for an unknown key, and while no other key has signed what is published.
    """
    async with ctx.db.transaction() as tx:
        log = await require_log(tx)
        keys = {key.id: key for key in await state.list_keys(tx)}
        if key_id not in keys:
            raise LogRefused(f"the log has no key {key_id}")
        if keys[key_id].retired_at is not None:
            return
        published = await checkpoints.find_published(tx)
        others = [key.verifier(log.origin) for key in keys.values() if key.id != key_id and key.retired_at is None]
        if published is None or not any(published.parse().is_signed_by(other) for other in others):
            remedy = (
                "make one with `soundmark log rotate-key`" if not others else "others will with the log's next entry"
            )
            raise LogRefused(f"no key but {key_id} has signed what is published; {remedy}")
        await state.update_key_retired(tx, key_id, now=ctx.clock.now())


async def require_log(tx: Tx) -> LogState:
    """Lock the log.

    Raises: LogRefused before Core's first start.
    """
    log = await state.lock(tx)
    if log is None:
        raise LogRefused("there is no log yet; Core makes it at its first start")
    return log
