"""The keyring of a running process: read from the database, kept current, never behind what others may have signed."""

import asyncio
from collections.abc import Iterable
from typing import Final

import structlog

from soundmark.core.domain.codes.signing_key import SigningKeyRecord
from soundmark.core.integrity import report_foreign_key
from soundmark.core.store.codes import signing_keys
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.sealing import SealBroken, Sealer
from soundmark.kit.crypto.signing import Keyring, PublicKey, SigningKey
from soundmark.kit.http.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database

REFRESH_S: Final = 0.5
_UNKNOWN_KEY_REFRESH_S: Final = 0.2  # A forged key id cannot make us ask the database more often than this.

_log: Final = structlog.get_logger()


class LiveKeyring:
    """Holds the current `Keyring` and refreshes it twice a second, and at once for a key id that it does not know.

    A key is in the database, and so published at `/v1/keys`, before any process can sign with it.
    """

    def __init__(self, db: Database, sealer: Sealer, clock: Clock) -> None:
        self._db: Final = db
        self._sealer: Final = sealer
        self._clock: Final = clock
        self._keyring: Keyring | None = None
        self._opened: dict[str, SigningKey] = {}
        self._genuine: set[tuple[str, bytes]] = set()
        self._foreign: set[tuple[str, bytes]] = set()  # Each is told of once.
        self._refreshing: asyncio.Lock = asyncio.Lock()
        self._asked_at_s = float("-inf")

    @property
    def keyring(self) -> Keyring:
        """The keys as last read."""
        assert self._keyring is not None, "the keyring is read before its first refresh"
        return self._keyring

    async def refresh(self) -> None:
        """Read the keys anew.

        Raises: DatabaseUnavailable; kit.sealing.SealBroken for another master key than the one that sealed the keys.
        """
        async with self._refreshing:
            await self._read()

    async def keyring_with(self, key_id: str) -> Keyring:
        """The keyring, read anew first where `key_id` is not in it and that was not tried just now."""
        if key_id not in self.keyring.keys:
            async with self._refreshing:
                if self._clock.monotonic_s() - self._asked_at_s >= _UNKNOWN_KEY_REFRESH_S:
                    await self._read()
                    self._asked_at_s = self._clock.monotonic_s()
        return self.keyring

    async def keep_current(self) -> None:
        """Refresh until cancelled. Where that fails the last keys stay, and it is tried again."""
        known_trouble: type[Exception] | None = None
        while True:
            await asyncio.sleep(REFRESH_S)
            try:
                await self.refresh()
                known_trouble = None
            except DatabaseUnavailable:
                pass  # Readiness and every request say so.
            except Exception as error:  # noqa: BLE001 - whatever it was, we must not sign with a replaced key for ever
                # Once and not twice a second, for as long as it stays the same.
                if type(error) is not known_trouble:
                    known_trouble = type(error)
                    _log.error("signing_keys_not_refreshed", error=known_trouble.__name__, exc_info=error)

    async def _read(self) -> None:
        # Under the lock only: of two readings at once, the older could be kept and hide a key that was asked for.
        assert self._refreshing.locked(), "one reading at a time"
        async with self._db.transaction() as tx:
            records = await signing_keys.list_all(tx)
        keys = {record.key_id: _published(record) for record in self.ours(records)}
        self._keyring = Keyring(keys, self._open(_active_of(records)))

    async def key_to_trust(self) -> PublicKey:
        """The key that whoever verifies proofs has to trust from now on, as the database says it at this moment.

        The one that is about to sign, from when on a rotation tells Audience of it; else the one that signs.

        Raises: DatabaseUnavailable.
        """
        records = await self._ours_now()
        coming = [record for record in records if record.status == "next" and record.push_began_at is not None]
        return _published(coming[0] if coming else _active_of(records))

    async def key_that_signs(self) -> PublicKey:
        """The active key, as the database says it at this moment.

        Raises: DatabaseUnavailable.
        """
        return _published(_active_of(await self._ours_now()))

    async def _ours_now(self) -> list[SigningKeyRecord]:
        async with self._db.transaction() as tx:
            return self.ours(await signing_keys.list_all(tx))

    def ours(self, records: Iterable[SigningKeyRecord]) -> list[SigningKeyRecord]:
        """Those of `records` that Core made itself; an alarm for every other.

        Whoever can write to the database could add a key of his own, and Codes signed with it. What was found genuine
        stays so in this process, also when its sealed copy is moved to another master key.
        """
        return [record for record in records if self._is_ours(record)]

    def _is_ours(self, record: SigningKeyRecord) -> bool:
        seen = (record.key_id, record.public_key)
        if seen in self._genuine:
            return True
        if _vouched_for(record, self._sealer) == record.public_key:
            self._genuine.add(seen)
            return True
        if seen not in self._foreign:
            self._foreign.add(seen)
            report_foreign_key(record.key_id)
        return False

    def _open(self, active: SigningKeyRecord) -> SigningKey:
        if active.key_id not in self._opened:
            self._opened = {active.key_id: unseal_key(active, self._sealer)}
            _log.info("signing_key_active", key_id=active.key_id)
        return self._opened[active.key_id]


def unseal_key(record: SigningKeyRecord, sealer: Sealer) -> SigningKey:
    """The key pair of a stored key.

    Raises: kit.sealing.SealBroken.
    """
    assert record.sealed_seed is not None, "a retired key does not sign"
    seed = sealer.unseal(record.sealed_seed, table="signing_keys", column="sealed_seed", row=record.key_id)
    return SigningKey.from_seed(record.key_id, seed)


def _active_of(records: Iterable[SigningKeyRecord]) -> SigningKeyRecord:
    active = next((record for record in records if record.status == "active"), None)
    assert active is not None, "there is an active key since the first start"
    return active


def _published(record: SigningKeyRecord) -> PublicKey:
    return PublicKey(record.key_id, record.public_key, record.status)


def _vouched_for(record: SigningKeyRecord, sealer: Sealer) -> bytes | None:
    if record.sealed_public_key is None:
        return None
    try:
        return sealer.unseal(
            record.sealed_public_key, table="signing_keys", column="sealed_public_key", row=record.key_id
        )
    except SealBroken:
        return None


def seal_public_key(public_key: bytes, key_id: str, sealer: Sealer) -> bytes:
    """The copy of a public half that shows that it is Core's own."""
    return sealer.seal(public_key, table="signing_keys", column="sealed_public_key", row=key_id)


def seal_seed(seed: bytes, key_id: str, sealer: Sealer) -> bytes:
    """The stored form of a key pair's seed."""
    return sealer.seal(seed, table="signing_keys", column="sealed_seed", row=key_id)
