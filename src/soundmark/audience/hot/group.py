"""One commit for many events: those that arrive while a batch commits are the next batch."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Final

import structlog
from prometheus_client import Histogram

from soundmark.audience.domain.integration import QuotaKey
from soundmark.audience.domain.packing import country_number
from soundmark.audience.hot.decision import BatchDecision, StoredRows, pair_of
from soundmark.audience.hot.integration_state import TRANSITION, IntegrationState, refusal_at, source_of
from soundmark.audience.hot.pending_event import Outcome, PendingEvent
from soundmark.audience.secrets import open_hmac_secret
from soundmark.audience.store import distribution, ingestion
from soundmark.audience.store.ingestion import EventRow, SourceRow
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.sealing import SealBroken, Sealer
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable, InternalError, Unauthenticated
from soundmark.kit.postgres.batching import Batcher
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.kept_connection import KeptConnection
from soundmark.kit.postgres.pipelined_tx import PipelinedTx
from soundmark.kit.postgres.transaction import REFUSED_ERRORS, Tx
from soundmark.kit.text.months import month_of

_BATCH_MAX: Final = 256
_WAITING_MAX: Final = 4096  # At 16 KiB at most: 64 MiB. If more are waiting, the database cannot keep up.
_BATCH_TIMEOUT_S: Final = 5.0
_REMEMBERED_MAX: Final = 100_000
_MS_OF_S: Final = 1000
_log: Final = structlog.get_logger()
_batch_size: Final = Histogram(
    "soundmark_events_group_size", "Events processed in one group.", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256)
)
_batch_seconds: Final = Histogram(
    "soundmark_events_group_seconds",
    "From the first statement of a group to its commit.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)


class _RowGone(Exception):
    """A row that was to be locked is gone; nothing was written."""


class GroupCommit:
    """A batcher that judges and stores the events of many callers in few transactions, on its own connection.

    Checks that need no database run while the previous batch commits. Event ids, proofs, pairs and quotas depend on the
    order, so they are judged under locks on the months that the batch counts in: what was read stays true until the
    commit, whatever other processes do. An event has its outcome only after the commit. A commit whose answer was lost
    is never repeated: its callers get DatabaseUnavailable, deliver again, and get the outcome of their events then.

    Source: contract, section 6; docs/adr/0010.
    """

    def __init__(self, db: Database, clock: Clock, sealer: Sealer) -> None:
        self._clock: Final = clock
        self._sealer: Final = sealer
        self._is_pooled: Final = not db.session.sends_startup
        self._connection: Final = KeptConnection(db, timeout_s=_BATCH_TIMEOUT_S, prepare=self._prepare)
        self._batcher: Final = Batcher(self._settle, size_max=_BATCH_MAX, waiting_max=_WAITING_MAX)
        self._token_key = b""
        self._transition_until: datetime | None = None
        self._sources: dict[str, IntegrationState] = {}
        self._codes: dict[tuple[str, str], int] = {}
        self._months: set[tuple[QuotaKey, date]] = set()

    def start(self, token_key: bytes) -> None:
        """Digest measurement tokens under `token_key` from now on."""
        self._token_key = token_key

    async def aclose(self) -> None:
        """Stop, and close the connection."""
        await self._batcher.aclose()
        await self._connection.aclose()

    def deliver(self, delivery: PendingEvent) -> asyncio.Future[Outcome]:
        """Return the future of the event's outcome, which is set after the commit."""
        assert self._token_key, "no event is delivered before the start"
        outcome = self._batcher.submit(delivery)
        source = self._sources.get(delivery.unread.integration_id or "")
        if source is not None and not outcome.done():
            # The database is busy with the previous batch. Whether this integration is unchanged is checked later.
            delivery.check(source, self._token_key)
        return outcome

    async def _prepare(self, tx: Tx) -> None:
        self._months.clear()  # The server that lost a connection may have lost more.
        began_at = await ingestion.prepare_connection(
            tx, is_pooled=self._is_pooled, is_distributed=await distribution.is_distributed(tx)
        )
        self._transition_until = began_at + TRANSITION

    async def _settle(self, batch: Sequence[PendingEvent]) -> list[Outcome]:
        """Return the outcome of each event; fail only with a Problem, so that no event is judged again alone."""
        _batch_size.observe(len(batch))
        try:
            with _batch_seconds.time():
                await self._judge(batch)
        except DatabaseUnavailable as problem:
            _log.warning("group_failed", error=type(problem.__cause__ or problem).__name__, events=len(batch))
            raise
        except Exception as error:  # noqa: BLE001 - after any error, the batch has an outcome
            # Without the error's text, which may contain the content of a row.
            _log.error("group_failed", error=type(error).__name__, events=len(batch))
            raise InternalError from None
        return [_outcome_of(delivery) for delivery in batch]

    async def _judge(self, batch: Sequence[PendingEvent]) -> None:
        """Judge, and judge again if the server refused the transaction, so that nothing was written.

        A tenant may have been purged, whose events no integration vouches for then, or another process may have the
        same event at the turn of a month, when the two lock different rows. Not every server says which of its rules
        was broken.
        """
        try:
            await self._connection.run(lambda tx: self._judge_once(tx, batch))
        except (*REFUSED_ERRORS, _RowGone):
            for delivery in batch:
                delivery.checked_by = None
            await self._connection.run(lambda tx: self._judge_once(tx, batch))

    async def _judge_once(self, tx: PipelinedTx, batch: Sequence[PendingEvent]) -> None:
        """Refuse the events that no integration vouches for, then judge the others in one transaction."""
        await self._refuse_strangers(tx, batch)
        admitted = [delivery for delivery in batch if delivery.refusal is None]
        if admitted:
            await self._record(tx, admitted)

    async def _refuse_strangers(self, tx: PipelinedTx, batch: Sequence[PendingEvent]) -> None:
        """Refuse the events that their integration does not vouch for now, with one query and no lock."""
        doubtful = [one for one in batch if one.checked_by is None or one.refusal is not None]
        if not doubtful:
            return
        ids = {one.unread.integration_id for one in doubtful if one.unread.integration_id is not None}
        found = self._reuse_unchanged(await ingestion.find_sources(tx, ids))
        for one in doubtful:
            source = found.get(one.unread.integration_id or "")
            if source is None or one.checked_by is not source:
                one.check(source, self._token_key)
            one.outcome = one.refusal

    def _reuse_unchanged(self, rows: Iterable[SourceRow]) -> dict[str, IntegrationState]:
        """Return the integrations of these rows; an unchanged one is the same object as before."""
        if len(self._sources) > _REMEMBERED_MAX:
            self._sources.clear()
        found = {}
        for row in rows:
            source = self._sources.get(row.id)
            if source is None or source.row != row:
                source = self._sources[row.id] = source_of(row, self._secret_of(row))
            found[row.id] = source
        return found

    def _secret_of(self, row: SourceRow) -> Secret | None:
        try:
            return open_hmac_secret(self._sealer, row.id, row.sealed_secret)
        except SealBroken:
            _log.error("hmac_secret_does_not_open", integration_id=row.id)
            return None

    async def _record(self, tx: PipelinedTx, deliveries: Sequence[PendingEvent]) -> None:
        """Lock the months and read, decide in the order of arrival, then write and commit.

        The clock is read after taking the locks; only the month to count in is chosen before.
        """
        first_day = month_of(self._clock.now()).first_day
        quotas = sorted({_quota_key_of(one) for one in deliveries})
        await self._ensure_months(tx, quotas, first_day)
        fresh, found = await self._lock_and_read(tx, deliveries, quotas, first_day)
        decided = self._decide(deliveries, fresh, found)
        await self._write(tx, decided, first_day)
        for delivery, outcome in decided.outcomes:
            delivery.outcome = outcome

    async def _ensure_months(self, tx: PipelinedTx, quotas: Sequence[QuotaKey], first_day: date) -> None:
        """Insert missing rows that will be locked, in a transaction of its own, so that other processes find them."""
        missing = [quota for quota in quotas if (quota, first_day) not in self._months]
        if missing:
            await ingestion.insert_months(tx, missing, first_day)
            if len(self._months) > _REMEMBERED_MAX:
                self._months.clear()
            self._months.update((quota, first_day) for quota in missing)

    async def _lock_and_read(
        self, tx: PipelinedTx, deliveries: Sequence[PendingEvent], quotas: Sequence[QuotaKey], first_day: date
    ) -> tuple[dict[str, IntegrationState], StoredRows]:
        """Begin, lock, and return the current integrations and the stored rows that concern these events."""
        numbers = [_number_of(one) for one in deliveries]
        event_keys, proof_keys = [one.event_key for one in deliveries], [one.proof_key for one in deliveries]
        pairs = [pair_of(number, one) for number, one in zip(numbers, deliveries, strict=True)]
        async with tx.pipeline() as send:
            send(tx.run("BEGIN"))
            if self._is_pooled:
                send(ingestion.prepare_transaction(tx))
            counts = send(ingestion.lock_months(tx, quotas, first_day))
            sources = send(ingestion.find_sources(tx, {one.event.integration_id for one in deliveries}))
            bodies = send(ingestion.find_event_bodies(tx, numbers, event_keys))
            spent = send(ingestion.find_spent_proofs(tx, numbers, proof_keys))
            paired = send(ingestion.find_pairs(tx, pairs))
        if len(counts.result()) != len(quotas):
            raise _RowGone
        found = StoredRows(
            bodies={(numbers[place], event_keys[place]): body for place, body in bodies.result().items()},
            proofs={(numbers[place], proof_keys[place]) for place in spent.result()},
            pairs={pairs[place] for place in paired.result()},
            counts=counts.result(),
        )
        return self._reuse_unchanged(sources.result()), found

    def _decide(
        self, deliveries: Sequence[PendingEvent], fresh: dict[str, IntegrationState], found: StoredRows
    ) -> BatchDecision:
        assert self._transition_until is not None, "set when the connection was prepared"
        decided = BatchDecision(self._clock.now())
        for delivery in deliveries:
            source = fresh.get(delivery.event.integration_id)
            if source is None or delivery.checked_by is not source:
                delivery.check(source, self._token_key)
            problem = delivery.refusal
            if source is not None and problem is None:
                problem = refusal_at(source, delivery.event, decided.now, transition_until=self._transition_until)
            if problem is not None or source is None:
                decided.outcomes.append((delivery, problem or Unauthenticated()))
            else:
                decided.decide(delivery, source, found)
        return decided

    async def _write(self, tx: PipelinedTx, decided: BatchDecision, first_day: date) -> None:
        """Commit everything that was decided, or nothing."""
        new_codes = await self._number_codes(tx, decided)
        async with tx.ending():
            if decided.recorded:
                keys = [_code_of(one) for _, one in decided.recorded]
                codes = [new_codes.get(key) or self._codes[key] for key in keys]
                rows = [
                    _event_row(number, one, code) for (number, one), code in zip(decided.recorded, codes, strict=True)
                ]
                await ingestion.insert_events(tx, rows)
                await ingestion.update_months(tx, decided.added, first_day)
            if decided.spending:
                await ingestion.insert_event_ids(
                    tx, [(number, one.event_key, one.body_key, one.day) for number, one in decided.spending]
                )
                await ingestion.insert_spent_proofs(
                    tx, [(number, one.proof_key, one.proof_day) for number, one in decided.spending]
                )
            if decided.signals:
                signals = [(number, *counts) for number, counts in sorted(decided.signals.items())]
                await ingestion.update_integrity_days(tx, decided.now.date(), signals)
        # After the commit, because only now does everybody see them.
        if len(self._codes) > _REMEMBERED_MAX:
            self._codes.clear()
        self._codes.update(new_codes)

    async def _number_codes(self, tx: PipelinedTx, decided: BatchDecision) -> dict[tuple[str, str], int]:
        """Return the numbers of the Codes that this process does not know yet. A number outlives its Code's events."""
        unknown = {
            (number, one.event.xr_id): one.event for number, one in decided.recorded if _code_of(one) not in self._codes
        }
        if not unknown:
            return {}
        rows = await ingestion.insert_codes(
            tx, [(number, xr_id, event.proof.campaign_id) for (number, xr_id), event in unknown.items()]
        )
        return {(unknown[number, xr_id].integration_id, xr_id): code for number, xr_id, code in rows}


def _outcome_of(delivery: PendingEvent) -> Outcome:
    assert delivery.outcome is not None, "every event of a judged batch has an outcome"
    return delivery.outcome


def _quota_key_of(delivery: PendingEvent) -> QuotaKey:
    assert delivery.checked_by is not None, "an integration vouched for it"
    return delivery.checked_by.row.organization_id, delivery.checked_by.row.mode


def _number_of(delivery: PendingEvent) -> int:
    assert delivery.checked_by is not None, "an integration vouched for it"
    return delivery.checked_by.row.number


def _code_of(delivery: PendingEvent) -> tuple[str, str]:
    return delivery.event.integration_id, delivery.event.xr_id


def _event_row(number: int, delivery: PendingEvent, code: int) -> EventRow:
    event = delivery.event
    country = None if event.country is None else country_number(event.country)
    return EventRow(delivery.token, number, delivery.day, code, _ms_of_day(event.occurred_at), event.receiver, country)


def _ms_of_day(moment: datetime) -> int:
    return ((moment.hour * 60 + moment.minute) * 60 + moment.second) * _MS_OF_S + moment.microsecond // _MS_OF_S
