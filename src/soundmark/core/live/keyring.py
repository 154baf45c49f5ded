"""The keyring of a running process, read from the database and kept current with what other processes sign."""

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
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.notifications import Listener
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.tasks import running, wait_for_event

REFRESH_S: Final = 0.5
_REFRESH_NOTIFIED_S: Final = 5.0  # While notifications arrive; one may be lost.
_UNKNOWN_KEY_REFRESH_S: Final = 0.2  # Forged key ids cannot cause more frequent queries than this.

_log: Final = structlog.get_logger()


class LiveKeyring:
    """Holds the current `Keyring`. Refreshes it when a key changes, and at once for an unknown key id.

    While it hears of no changes, it reads the keys twice a second.

    A key is stored in the database, and so published at `/v1/keys`, before any process can sign with it.
    """

    def __init__(self, db: Database, sealer: Sealer, clock: Clock) -> None:
        self._db: Final = db
        self._sealer: Final = sealer
        self._clock: Final = clock
        self._keyring: Keyring | None = None
        self._opened: dict[str, SigningKey] = {}
        self._genuine: set[tuple[str, bytes]] = set()
        self._foreign: set[tuple[str, bytes]] = set()  # Each is reported once.
        self._trouble: type[Exception] | None = None
        self._refreshing: asyncio.Lock = asyncio.Lock()
        self._searched_at_s = float("-inf")
        self._changed: Final = asyncio.Event()
        self._listener: Final = Listener(db, {"signing_keys": self._changed})

    @property
    def keyring(self) -> Keyring:
        """The keys as last read."""
        assert self._keyring is not None, "the keyring is read before its first refresh"
        return self._keyring

    async def refresh(self) -> None:
        """Read the keys again.

        Raises: DatabaseUnavailable; kit.crypto.sealing.SealBroken if the keys were sealed under another master key.
        """
        async with self._refreshing:
            await self._read()

    async def keyring_with(self, key_id: str) -> Keyring:
        """Return the keyring. If `key_id` is not in it, read it again first, unless that was just done."""
        if key_id not in self.keyring.keys:
            async with self._refreshing:
                if self._clock.monotonic_s() - self._searched_at_s >= _UNKNOWN_KEY_REFRESH_S:
                    await self._read()
                    self._searched_at_s = self._clock.monotonic_s()
        return self.keyring

    async def keep_current(self) -> None:
        """Refresh until cancelled. If a refresh fails, the last keys stay until the next one succeeds."""
        async with running("signing-key-notifications", self._listener.keep_listening()):
            await self._keep_current()

    async def is_current(self) -> bool:
        """Return False if the keys cannot be read although the database answers, such as a key that does not open."""
        return self._trouble is None

    async def _keep_current(self) -> None:
        while True:
            await wait_for_event(self._changed, _REFRESH_NOTIFIED_S if self._listener.is_listening else REFRESH_S)
            self._changed.clear()
            try:
                await self.refresh()
                self._trouble = None
            except DatabaseUnavailable:
                await asyncio.sleep(REFRESH_S)  # Readiness and every request report it.
                self._changed.set()
            except Exception as error:  # noqa: BLE001 - if this loop ended, the process would sign with an old key
                # Logged once, not twice a second, as long as it is the same error.
                if type(error) is not self._trouble:
                    self._trouble = type(error)
                    _log.error("signing_keys_not_refreshed", error=self._trouble.__name__, exc_info=error)

    async def _read(self) -> None:
        # Only under the lock: of two concurrent reads, the older result could win and hide a key.
        assert self._refreshing.locked(), "one read at a time"
        async with self._db.transaction() as tx:
            records = await signing_keys.list_all(tx)
        keys = {record.key_id: _published(record) for record in self.ours(records)}
        self._keyring = Keyring(keys, self._open(_active_of(records)))

    async def key_to_trust(self) -> PublicKey:
        """Read from the database the key that verifiers of proofs must trust from now on.

        During a rotation, once its push to Audience has begun, this is the new key; otherwise it is the active key.

        Raises: DatabaseUnavailable.
        """
        records = await self._read_ours()
        coming = [record for record in records if record.status == "next" and record.push_began_at is not None]
        return _published(coming[0] if coming else _active_of(records))

    async def key_that_signs(self) -> PublicKey:
        """Read the active key from the database.

        Raises: DatabaseUnavailable.
        """
        return _published(_active_of(await self._read_ours()))

    async def _read_ours(self) -> list[SigningKeyRecord]:
        async with self._db.transaction() as tx:
            return self.ours(await signing_keys.list_all(tx))

    def ours(self, records: Iterable[SigningKeyRecord]) -> list[SigningKeyRecord]:
        """Return those of `records` that Core made itself, and report every other.

        Somebody who can write to the database could add a key of their own, and Codes signed with it. A key that was
        found genuine stays genuine in this process, even when its sealed copy moves to another master key.
        """
        return [record for record in records if self._is_ours(record)]

    def _is_ours(self, record: SigningKeyRecord) -> bool:
        seen = (record.key_id, record.public_key)
        if seen in self._genuine:
            return True
        if _unseal_public_half(record, self._sealer) == record.public_key:
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
    """Return the key pair of a stored key.

    Raises: kit.crypto.sealing.SealBroken.
    """
    assert record.sealed_seed is not None, "a retired key does not sign"
    seed = sealer.unseal(record.sealed_seed, table="signing_keys", column="sealed_seed", row=record.key_id)
    return SigningKey.from_seed(record.key_id, seed)


async def read_signing_key(tx: Tx, sealer: Sealer) -> SigningKey:
    """Return the active key pair, for a signature that is stored in the same transaction.

    Raises: kit.crypto.sealing.SealBroken.
    """
    return unseal_key(_active_of(await signing_keys.list_all(tx)), sealer)


def _active_of(records: Iterable[SigningKeyRecord]) -> SigningKeyRecord:
    active = next((record for record in records if record.status == "active"), None)
    assert active is not None, "there has been an active key since the first start"
    return active


def _published(record: SigningKeyRecord) -> PublicKey:
    return PublicKey(record.key_id, record.public_key, record.status)


def _unseal_public_half(record: SigningKeyRecord, sealer: Sealer) -> bytes | None:
    try:
        return sealer.unseal(
            record.sealed_public_key, table="signing_keys", column="sealed_public_key", row=record.key_id
        )
    except SealBroken:
        return None


def seal_public_key(public_key: bytes, key_id: str, sealer: Sealer) -> bytes:
    """Return the sealed copy of a public key, which proves that Core made the key."""
    return sealer.seal(public_key, table="signing_keys", column="sealed_public_key", row=key_id)


def seal_seed(seed: bytes, key_id: str, sealer: Sealer) -> bytes:
    """Return the stored form of a key pair's seed."""
    return sealer.seal(seed, table="signing_keys", column="sealed_seed", row=key_id)
