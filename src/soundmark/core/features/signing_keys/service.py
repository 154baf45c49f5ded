"""Commands on the signing keys: `next` → `active` → `retiring` → retired."""

from datetime import timedelta
from typing import Final

from soundmark.core.custody import seal_public_key, seal_seed, unseal_key
from soundmark.core.domain.signing_key import SigningKeyRecord
from soundmark.core.store import codes, signing_keys
from soundmark.kit.clock import Clock
from soundmark.kit.entropy import Entropy
from soundmark.kit.ids import mint
from soundmark.kit.postgres import EVERY_TENANT, Database, Tx
from soundmark.kit.sealing import Sealer
from soundmark.kit.signing import SEED_BYTES, KeyStatus, SigningKey

PUBLISHED_AHEAD_S: Final = 60  # `/v1/keys` may be cached for this long (contract, section 1).
# The longest life of a proof, and a generous lag of a process that has not heard of the rotation yet.
PROOFS_GONE_AFTER: Final = timedelta(minutes=6)


class KeyRefused(Exception):  # noqa: N818 - named for what was found
    """The key is not in a state that allows the step; the message says why, for an operator."""


async def ensure_active(db: Database, sealer: Sealer, clock: Clock, entropy: Entropy) -> None:
    """Core has a key to sign with: the one it had, or a new one on the very first start. Safe in many processes.

    Raises: kit.sealing.SealBroken when the stored key was sealed under another master key.
    """
    async with db.transaction() as tx:
        records = await signing_keys.lock_all(tx)
        active = next((record for record in records if record.status == "active"), None)
        if active is None:
            await _make(tx, sealer, clock, entropy, status="active")
        else:
            unseal_key(active, sealer)
        for record in records:
            # Made by a release that did not vouch for the public half: its secret half does.
            if record.sealed_public_key is None and record.sealed_seed is not None:
                public_key = unseal_key(record, sealer).public_key
                vouched = seal_public_key(public_key, record.key_id, sealer)
                await signing_keys.update_sealed_public_key(tx, record.key_id, vouched)


async def list_keys(db: Database) -> list[SigningKeyRecord]:
    """Every key that ever was, oldest first."""
    async with db.snapshot() as tx:
        return await signing_keys.list_all(tx)


async def stage(db: Database, sealer: Sealer, clock: Clock, entropy: Entropy) -> SigningKeyRecord:
    """A `next` key is published: the one that was staged before and not activated yet, or a new one."""
    async with db.transaction() as tx:
        for record in await signing_keys.lock_all(tx):
            if record.status == "next":
                return record
        return await _make(tx, sealer, clock, entropy, status="next")


async def activate(db: Database, clock: Clock, key_id: str) -> None:
    """The key signs from now on, and the one that did is `retiring`. Repeating it changes nothing.

    Raises: KeyRefused.
    """
    async with db.transaction() as tx:
        records = await signing_keys.lock_all(tx)
        key = pick(records, key_id)
        if key.status == "active":
            return
        if key.status != "next":
            raise KeyRefused(f"{key_id} is {key.status}; only a staged key can be activated")
        now = clock.now()
        for record in records:
            if record.status == "active":
                await signing_keys.update_status(tx, record.key_id, "retiring", now=now)
        await signing_keys.update_status(tx, key_id, "active", now=now)


async def retire(db: Database, clock: Clock, key_id: str) -> None:
    """The key is no longer published and its secret half is destroyed. Repeating it changes nothing.

    Raises: KeyRefused while an unexpired Code, or possibly a proof, carries its signature.
    Source: contract, section 3, `GET /v1/keys`.
    """
    async with db.transaction(tenant=EVERY_TENANT) as tx:
        key = pick(await signing_keys.lock_all(tx), key_id)
        if key.status == "retired":
            return
        if key.status != "retiring":
            raise KeyRefused(f"{key_id} is {key.status}; only a key that another one has replaced can be retired")
        now = clock.now()
        assert key.superseded_at is not None, "a retiring key was superseded at some time"
        if now < key.superseded_at + PROOFS_GONE_AFTER:
            raise KeyRefused(f"{key_id} signed proofs until a moment ago; try again in six minutes")
        if await codes.find_unexpired_signed_by(tx, key_id, now=now) is not None:
            raise KeyRefused(f"{key_id} signed Codes that have not expired")
        await signing_keys.update_status(tx, key_id, "retired", now=now)


async def _make(tx: Tx, sealer: Sealer, clock: Clock, entropy: Entropy, *, status: KeyStatus) -> SigningKeyRecord:
    key_id = mint(entropy, "sig_")
    seed = entropy.take(SEED_BYTES)
    now = clock.now()
    public_key = SigningKey.from_seed(key_id, seed).public_key
    record = SigningKeyRecord(
        key_id=key_id,
        public_key=public_key,
        sealed_seed=seal_seed(seed, key_id, sealer),
        status=status,
        created_at=now,
        activated_at=now if status == "active" else None,
        superseded_at=None,
        retired_at=None,
        sealed_public_key=seal_public_key(public_key, key_id, sealer),
    )
    await signing_keys.insert(tx, record)
    return record


def pick(records: list[SigningKeyRecord], key_id: str) -> SigningKeyRecord:
    """The key of this id.

    Raises: KeyRefused.
    """
    for record in records:
        if record.key_id == key_id:
            return record
    raise KeyRefused(f"there is no key {key_id}")
