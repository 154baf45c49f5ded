"""Commands on the signing keys: `next` → `active` → `retiring` → retired."""

from datetime import timedelta
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.codes.signing_key import SigningKeyRecord
from soundmark.core.live.keyring import seal_public_key, seal_seed, unseal_key
from soundmark.core.steps.log import log_key
from soundmark.core.store.codes import codes, signing_keys
from soundmark.kit.crypto.signing import SEED_BYTES, KeyStatus, SigningKey
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint

PUBLISHED_AHEAD_S: Final = 60  # `/v1/keys` may be cached for this long (contract, section 1).
# The longest life of a proof, and a margin for a process that has not noticed the rotation yet.
PROOFS_GONE_AFTER: Final = timedelta(minutes=6)


class KeyRefused(Exception):
    """The key is not in a state that allows the step; the message says why, for an operator."""


async def ensure_active(ctx: Context) -> None:
    """Create the first signing key if there is none, and check that the stored one opens. Safe in many processes.

    Raises: kit.crypto.sealing.SealBroken when the stored key was sealed under another master key.
    """
    async with ctx.db.transaction() as tx:
        records = await signing_keys.lock_all(tx)
        active = next((record for record in records if record.status == "active"), None)
        if active is None:
            await _insert_new(ctx, tx, status="active")
        else:
            unseal_key(active, ctx.sealer)


async def list_keys(ctx: Context) -> list[SigningKeyRecord]:
    """Return every key, past ones included, oldest first."""
    async with ctx.db.snapshot() as tx:
        return await signing_keys.list_all(tx)


async def stage(ctx: Context) -> SigningKeyRecord:
    """Publish a `next` key: one that was staged before and is not active yet, or a new one."""
    async with ctx.db.transaction() as tx:
        for record in await signing_keys.lock_all(tx):
            if record.status == "next":
                return record
        return await _insert_new(ctx, tx, status="next")


async def activate(ctx: Context, key_id: str) -> None:
    """Sign with the key from now on; the previous one becomes `retiring`. Repeating it changes nothing.

    Raises: KeyRefused.
    """
    async with ctx.db.transaction() as tx:
        records = await signing_keys.lock_all(tx)
        key = pick(records, key_id)
        if key.status == "active":
            return
        if key.status != "next":
            raise KeyRefused(f"{key_id} is {key.status}; only a staged key can be activated")
        now = ctx.clock.now()
        for record in records:
            if record.status == "active":
                await signing_keys.update_status(tx, record.key_id, "retiring", now=now)
                await log_key(tx, record, ["key.superseded"])
        await signing_keys.update_status(tx, key_id, "active", now=now)
        await log_key(tx, key, ["key.activated"])


async def retire(ctx: Context, key_id: str) -> None:
    """Withdraw the key from publication and destroy its secret half. Repeating it changes nothing.

    Raises: KeyRefused while an unexpired Code, or possibly a proof, carries its signature.
    Source: contract, section 3, `GET /v1/keys`.
    """
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        key = pick(await signing_keys.lock_all(tx), key_id)
        if key.status == "retired":
            return
        if key.status != "retiring":
            raise KeyRefused(f"{key_id} is {key.status}; only a key that has been replaced can be retired")
        now = ctx.clock.now()
        assert key.superseded_at is not None, "a retiring key was superseded at some time"
        if now < key.superseded_at + PROOFS_GONE_AFTER:
            raise KeyRefused(f"{key_id} signed proofs a moment ago; try again in six minutes")
        if await codes.find_unexpired_signed_by(tx, key_id, now=now) is not None:
            raise KeyRefused(f"{key_id} signed Codes that have not expired")
        await signing_keys.update_status(tx, key_id, "retired", now=now)
        await log_key(tx, key, ["key.retired"])


async def _insert_new(ctx: Context, tx: Tx, *, status: KeyStatus) -> SigningKeyRecord:
    key_id = mint(ctx.entropy, "sig_")
    seed = ctx.entropy.take(SEED_BYTES)
    now = ctx.clock.now()
    public_key = SigningKey.from_seed(key_id, seed).public_key
    record = SigningKeyRecord(
        key_id=key_id,
        public_key=public_key,
        sealed_seed=seal_seed(seed, key_id, ctx.sealer),
        status=status,
        created_at=now,
        activated_at=now if status == "active" else None,
        superseded_at=None,
        retired_at=None,
        sealed_public_key=seal_public_key(public_key, key_id, ctx.sealer),
    )
    await signing_keys.insert(tx, record)
    await log_key(tx, record, ["key.published", "key.activated"] if status == "active" else ["key.published"])
    return record


def pick(records: list[SigningKeyRecord], key_id: str) -> SigningKeyRecord:
    """Return the key with this id.

    Raises: KeyRefused.
    """
    for record in records:
        if record.key_id == key_id:
            return record
    raise KeyRefused(f"there is no key {key_id}")
