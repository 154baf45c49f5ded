"""The audit chain of a running process, which seals entries soon after their commit."""

import asyncio
from typing import Final

import structlog

from soundmark.core.domain.tenancy.audit_chain import CHAIN_KEY_BYTES, ChainKey, ChainLink, Head, Waiting
from soundmark.core.store.log import queue
from soundmark.core.store.tenancy import audit_chain
from soundmark.kit.clock import Clock
from soundmark.kit.crypto import instance_secrets
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.pipelined import PipelinedTransactions
from soundmark.kit.postgres.pipelined_tx import PipelinedTx
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.tasks import wait_for_event

SEAL_EVERY_S: Final = 0.4  # An entry is sealed within a second of its commit (docs/adr/0008); this leaves room.
SEALED_AT_ONCE: Final = 500
_SWEEP_EVERY_S: Final = 4.6  # With the 0.4 s before each round, five seconds.
_TENANTS_AT_ONCE: Final = 100
_KEY_NAME: Final = "audit_chain_key"

_log: Final = structlog.get_logger()


class ChainBroken(Exception):
    """The end of a chain differs from its head. Sealing more entries would hide where the chain broke."""


class AuditChain:
    """Seals the audit entries that this process wrote. Any number of processes may do so at the same time.

    It seals the organisations for which this process wrote an entry, 0.4 s after `store.tenancy.audit` announced the
    first of them to the `Database`. Every five seconds it looks for any organisation with an unsealed entry: a process
    may have ended before it sealed its own, and an operator's command seals nothing.
    """

    def __init__(self, db: Database, sealer: Sealer, clock: Clock, entropy: Entropy) -> None:
        self._db: Final = db
        self._pipelined: Final = PipelinedTransactions(db, size=1)  # It seals one organisation after the other.
        self._sealer: Final = sealer
        self._clock: Final = clock
        self._entropy: Final = entropy
        self._key: ChainKey | None = None
        self._to_seal: set[str] = set()
        self._known_trouble: dict[str, type[Exception]] = {}  # By organisation; "" is the sweep itself.

    @property
    def key(self) -> ChainKey:
        """The key that makes and verifies seals."""
        assert self._key is not None, "the chain must be opened before use"
        return self._key

    async def open(self) -> None:
        """Read the key of the chain from the database, or make it at the very first start.

        Several processes may do so at the same time.

        Raises: DatabaseUnavailable; kit.crypto.sealing.SealBroken if the key was sealed under another master key.
        """
        async with self._db.transaction() as tx:
            key = await instance_secrets.ensure(
                tx, self._sealer, _KEY_NAME, make=lambda: self._entropy.take(CHAIN_KEY_BYTES), now=self._clock.now()
            )
        self._key = ChainKey(key)

    async def keep_sealing(self) -> None:
        """Seal until cancelled. A failure for one organisation does not affect others; the next sweep retries it."""
        loop = asyncio.get_running_loop()
        sweep_at_s = loop.time()
        while True:
            if not self._to_seal:
                await wait_for_event(self._db.has_announced, sweep_at_s - loop.time())
            await asyncio.sleep(SEAL_EVERY_S)
            try:
                if loop.time() >= sweep_at_s:
                    await self.seal_waiting()
                    sweep_at_s = loop.time() + _SWEEP_EVERY_S
                await self._seal_announced()
            except DatabaseUnavailable:
                pass  # Readiness and every request report it.
            except Exception as error:  # noqa: BLE001 - if this loop ended, entries would stay unsealed for ever
                self._report("", error)
            else:
                self._known_trouble.pop("", None)

    async def seal_waiting(self) -> None:
        """Seal every entry that was unsealed when this began, unless another process is sealing it.

        Raises: DatabaseUnavailable.
        """
        # Entries that were announced so far are committed, so the sweep below finds them.
        self._to_seal = set()
        self._db.take_announced()
        last = ""
        while True:
            async with self._db.transaction() as tx:
                tenants = await audit_chain.list_waiting_tenants(tx, after=last, limit=_TENANTS_AT_ONCE)
                if tenants:
                    await queue.notify(tx)  # Their process may have ended before it did.
            for organization_id in tenants:
                await self._seal_all_of(organization_id)
            if len(tenants) < _TENANTS_AT_ONCE:
                return
            last = tenants[-1]

    async def _seal_announced(self) -> None:
        """Seal the entries that this process wrote, and those that another process had locked before.

        What was issued or revoked has entries, so this also wakes the worker for the transparency log.

        Raises: DatabaseUnavailable.
        """
        announced = self._db.take_announced()
        if announced:
            async with self._db.transaction() as tx:
                await queue.notify(tx)
        self._to_seal |= announced
        for organization_id in sorted(self._to_seal):
            await self._seal_all_of(organization_id)

    async def _seal_all_of(self, organization_id: str) -> None:
        self._to_seal.add(organization_id)
        try:
            while (count := await self._seal_some_of(organization_id)) == SEALED_AT_ONCE:
                pass
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - a failure for one organisation must not affect others
            self._report(organization_id, error)
        else:
            self._known_trouble.pop(organization_id, None)
            if count is None:
                return
        self._to_seal.discard(organization_id)

    async def _seal_some_of(self, organization_id: str) -> int | None:
        """Seal up to `SEALED_AT_ONCE` stages; return how many, or None while another process seals this organisation.

        A deleted organisation gives None too, until the next sweep.
        """
        async with self._pipelined.transaction(tenant=organization_id) as tx:
            head, waiting = await self._lock_chain(tx, organization_id)
            if head is None:
                return None
            seals, new_head = self._links(head, [entry for entry in waiting if not entry.is_sealed])
            if waiting:
                async with tx.ending():
                    if seals:
                        await audit_chain.insert_seals(tx, organization_id, seals)
                        await audit_chain.update_head(tx, organization_id, new_head)
                        if new_head.chain_position > head.chain_position:
                            await audit_chain.insert_grown(tx, organization_id)
                    await audit_chain.delete_waiting(tx, organization_id, waiting)
        # Notes of sealed stages may stay for as long as a deletion locks them, so they alone are no progress.
        return len(waiting) if seals else 0

    async def _lock_chain(self, tx: PipelinedTx, organization_id: str) -> tuple[Head | None, list[Waiting]]:
        """Lock the head of the chain, inserted first if need be, and return it and what is to be sealed.

        The head is None if the organisation is gone, or if another process holds it or the head.

        Raises: ChainBroken.
        """
        genesis = self.key.genesis(organization_id)
        for is_new in (False, True):
            async with tx.pipeline() as send:
                held = send(audit_chain.hold_tenant(tx, organization_id))
                if is_new:
                    send(audit_chain.insert_head(tx, organization_id, genesis=genesis))
                locked = send(audit_chain.lock_head(tx, organization_id))
                found = send(audit_chain.find_last_seal(tx, organization_id))
                waiting = send(audit_chain.list_waiting(tx, organization_id, limit=SEALED_AT_ONCE))
            head, last = locked.result(), found.result()
            if not held.result():
                return None, []
            if head is not None:
                expected = (0, None, genesis) if last is None else (last.position, last.entry_id, last.seal)
                if (head.position, head.entry_id, head.seal) != expected:
                    raise ChainBroken
                return head, waiting.result()
        return None, []

    def _links(self, head: Head, waiting: list[Waiting]) -> tuple[list[ChainLink], Head]:
        """Return the next links, and the head after them."""
        links: list[ChainLink] = []
        for entry in waiting:
            link = self.key.link(head, entry.content, entry.stage)
            links.append(link)
            head = head.after(link)
        return links, head

    def _report(self, organization_id: str, error: Exception) -> None:
        """Log a failure once, and again only when another kind of failure follows it."""
        if self._known_trouble.get(organization_id) is not type(error):
            self._known_trouble[organization_id] = type(error)
            _log.error(
                "audit_entries_not_sealed", organization_id=organization_id, error=type(error).__name__, exc_info=error
            )


async def read_chain_key(tx: Tx, sealer: Sealer) -> ChainKey | None:
    """Return the key of the chain, for verification; None before Core's first start.

    Raises: kit.crypto.sealing.SealBroken if the key was sealed under another master key.
    """
    key = await instance_secrets.find(tx, sealer, _KEY_NAME)
    return None if key is None else ChainKey(key)
