"""One commit for many events: what arrives while one group commits is the next group, and nobody is answered before."""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, Final, LiteralString

import psycopg
import structlog
from prometheus_client import Histogram
from psycopg.rows import TupleRow

from soundmark.audience.domain.packing import country_number
from soundmark.audience.domain.retention import first_day_of_month
from soundmark.audience.hot.decision import Decided, Found, Month, pair_of
from soundmark.audience.hot.delivery import Delivery, Outcome
from soundmark.audience.hot.event import UnreadEvent
from soundmark.audience.hot.source import TRANSITION, Source, refusal_at, source_of
from soundmark.audience.secrets import open_hmac_secret
from soundmark.audience.store import ingestion as sql
from soundmark.kit.clock import Clock
from soundmark.kit.postgres import Database
from soundmark.kit.problems import DatabaseUnavailable, InternalError, Problem, Unauthenticated
from soundmark.kit.sealing import SealBroken, Sealer
from soundmark.kit.secret import Secret
from soundmark.kit.tasks import ended

_GROUP_MAX: Final = 256
_WAITING_MAX: Final = 4096  # Of 16 KiB at most each: 64 MiB. Beyond it the database is not keeping up.
_GROUP_TIMEOUT_S: Final = 5.0
_REMEMBERED_MAX: Final = 100_000
_MS_OF_S: Final = 1000
_log: Final = structlog.get_logger()
_group_size: Final = Histogram(
    "soundmark_events_group_size", "Events judged together.", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256)
)
_group_seconds: Final = Histogram(
    "soundmark_events_group_seconds",
    "From the first statement of a group to its commit.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)


class _Undecided(Exception):  # noqa: N818 - named for what was found
    """A row that was to be locked is gone; nothing was written."""


class GroupCommit:
    """Judges and stores events for many callers with few transactions, on one connection of its own.

    While one group is under way the next gathers, and what can be judged of it without the database is judged then.
    Event ids, proofs, pairs and quotas, which have an order, are judged under the locks of the months that the group
    counts in: what was read stays true until the commit, with any number of processes. An outcome is given only after
    the commit that it rests on. A commit whose answer was lost is never repeated: its callers are told that the
    database is unavailable, deliver again, and learn what became of their events.

    Source: contract, section 6; docs/adr/0010.
    """

    def __init__(self, db: Database, clock: Clock, sealer: Sealer) -> None:
        self._db: Final = db
        self._clock: Final = clock
        self._sealer: Final = sealer
        self._token_key = b""
        self._transition_until: datetime | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: psycopg.AsyncConnection[TupleRow] | None = None
        self._may_be_committed = False
        self._waiting: list[Delivery] = []
        self._arrived: Final = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._sources: dict[str, Source] = {}
        self._codes: dict[tuple[str, str], int] = {}
        self._months: set[tuple[str, str, date]] = set()

    def start(self, token_key: bytes) -> None:
        """Begin to judge; measurement tokens are digested under `token_key`."""
        self._token_key = token_key
        self._loop = asyncio.get_running_loop()
        self._worker = asyncio.create_task(self._work(), name="group-commit")

    async def aclose(self) -> None:
        """Stop, and let go of the connection."""
        if self._worker is not None:
            await ended(self._worker)
        await self._drop_connection()

    def deliver(self, unread: UnreadEvent, signature: bytes | None) -> Delivery:
        """Take an event, whose outcome is `settled` once it is committed.

        `signature` is what its sender claims the HMAC to be.
        """
        assert self._loop is not None, "delivered before the start"
        settled: asyncio.Future[Outcome] = self._loop.create_future()
        delivery = Delivery(unread, signature, settled)
        if len(self._waiting) >= _WAITING_MAX:
            settled.set_result(DatabaseUnavailable())
            return delivery
        source = self._sources.get(unread.integration_id or "")
        if source is not None:
            # The database is busy with the group before. Whether this integration is still the same is seen later.
            delivery.check(source, self._token_key)
        self._waiting.append(delivery)
        self._arrived.set()
        return delivery

    async def _work(self) -> None:
        while True:
            await self._arrived.wait()
            # One turn of the loop, so that everything that arrived with the first travels with it.
            await asyncio.sleep(0)
            group, self._waiting = self._waiting[:_GROUP_MAX], self._waiting[_GROUP_MAX:]
            if not self._waiting:
                self._arrived.clear()
            _group_size.observe(len(group))
            with _group_seconds.time():
                await self._settle(group)
            for delivery in group:
                if not delivery.settled.done():
                    assert delivery.outcome is not None, "a settled group has outcomes"
                    delivery.settled.set_result(delivery.outcome)

    async def _settle(self, group: Sequence[Delivery]) -> None:
        """Every delivery of the group has an outcome, whatever happens."""
        problem: Problem
        try:
            async with asyncio.timeout(_GROUP_TIMEOUT_S):
                await self._judge(group)
        except (psycopg.OperationalError, psycopg.InterfaceError, TimeoutError, DatabaseUnavailable) as error:
            problem = DatabaseUnavailable()
            _log.warning("group_failed", error=type(error).__name__, events=len(group))
        except Exception as error:  # noqa: BLE001 - whatever it was, the callers must not wait for ever
            problem = InternalError()
            # Not the error's text, in which the content of a row may stand.
            _log.error("group_failed", error=type(error).__name__, events=len(group))
        else:
            return
        await self._drop_connection()
        for delivery in group:
            delivery.outcome = problem

    async def _judge(self, group: Sequence[Delivery]) -> None:
        """Judge; and once more where something had changed under us and nothing was written.

        That is a connection that had died before it was used, a month that was purged, or the same event in another
        process at the turn of a month, when the two lock different rows.
        """
        for is_last in (False, True):
            self._may_be_committed = False
            try:
                await self._judge_once(group)
            except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable):
                raise
            except (psycopg.errors.IntegrityError, _Undecided):
                if is_last:
                    raise
                self._months.clear()
            except (psycopg.OperationalError, psycopg.InterfaceError):
                if is_last or self._may_be_committed:
                    raise
                await self._drop_connection()
            else:
                return

    async def _judge_once(self, group: Sequence[Delivery]) -> None:
        """1. What no integration vouches for is refused. 2. The rest is judged in one transaction."""
        if self._connection is None:
            await self._connect()
        await self._refuse_strangers(group)
        admitted = [delivery for delivery in group if delivery.refusal is None]
        if admitted:
            await self._record(admitted)

    async def _refuse_strangers(self, group: Sequence[Delivery]) -> None:
        """Whom the integration does not vouch for as it is now, is refused: with one look-up for all, and no lock."""
        doubtful = [one for one in group if one.checked_by is None or one.refusal is not None]
        if not doubtful:
            return
        ids = {one.unread.integration_id for one in doubtful if one.unread.integration_id is not None}
        found = self._known(await (await self._execute(sql.FIND_SOURCES, sql.texts(ids))).fetchall())
        for one in doubtful:
            source = found.get(one.unread.integration_id or "")
            if source is None or one.checked_by is not source:
                one.check(source, self._token_key)
            one.outcome = one.refusal

    def _known(self, rows: Iterable[Any]) -> dict[str, Source]:
        """The integrations of these rows; who was known and is unchanged is the same object as before."""
        if len(self._sources) > _REMEMBERED_MAX:
            self._sources.clear()
        found = {}
        for row in map(sql.SourceRow._make, rows):
            source = self._sources.get(row.id)
            if source is None or source.row != row:
                source = self._sources[row.id] = source_of(row, self._secret_of(row))
            found[row.id] = source
        return found

    def _secret_of(self, row: sql.SourceRow) -> Secret | None:
        try:
            return open_hmac_secret(self._sealer, row.id, row.sealed_secret)
        except SealBroken:
            _log.error("hmac_secret_does_not_open", integration_id=row.id)
            return None

    async def _record(self, deliveries: Sequence[Delivery]) -> None:
        """1. Lock the months and read. 2. Decide in the order of arrival. 3. Write and commit.

        The clock is read after the locks; only which month is counted in is decided before them.
        """
        first_day = first_day_of_month(self._clock.now())
        months = sorted({_month_of(one) for one in deliveries})
        await self._ensure_months([(*month, first_day) for month in months])
        assert self._connection is not None, "connected before"
        try:
            fresh, found = await self._lock_and_read(deliveries, months, first_day)
            decided = self._decide(deliveries, fresh, found)
            await self._write(decided, first_day)
        except BaseException:
            with contextlib.suppress(psycopg.Error):
                await self._connection.rollback()
            raise
        for delivery, outcome in decided.outcomes:
            delivery.outcome = outcome

    async def _lock_and_read(
        self, deliveries: Sequence[Delivery], months: Sequence[Month], first_day: date
    ) -> tuple[dict[str, Source], Found]:
        """The integrations as they are now, and what is stored of these events: read in this order, in one go."""
        numbers = [_number_of(one) for one in deliveries]
        integrations = sql.array(numbers)
        assert self._connection is not None, "connected before"
        async with self._connection.pipeline() as pipeline:
            await self._execute("BEGIN")
            locked = await self._execute(sql.LOCK_MONTHS, *_month_columns(months, first_day))
            sources = await self._execute(sql.FIND_SOURCES, sql.texts({one.event.integration_id for one in deliveries}))
            event_keys, proof_keys = ([one.event_key for one in deliveries], [one.proof_key for one in deliveries])
            seen = await self._execute(sql.FIND_EVENT_IDS, integrations, sql.texts(event_keys))
            spent = await self._execute(sql.FIND_SPENT_PROOFS, integrations, sql.texts(proof_keys))
            paired = await self._execute(
                sql.FIND_PAIRS,
                integrations,
                sql.texts([one.event.xr_id for one in deliveries]),
                sql.array([one.day for one in deliveries]),
                sql.array([one.token for one in deliveries]),
            )
            await pipeline.sync()
        counts = {(row[0], row[1]): row[2] for row in await locked.fetchall()}
        if len(counts) != len(months):
            raise _Undecided
        found = Found(
            # Places are counted from one.
            bodies={(numbers[at - 1], event_keys[at - 1]): body.hex for at, body in await seen.fetchall()},
            proofs={(numbers[at - 1], proof_keys[at - 1]) for (at,) in await spent.fetchall()},
            pairs={pair_of(numbers[at - 1], deliveries[at - 1]) for (at,) in await paired.fetchall()},
            counts=counts,
        )
        return self._known(await sources.fetchall()), found

    def _decide(self, deliveries: Sequence[Delivery], fresh: dict[str, Source], found: Found) -> Decided:
        assert self._transition_until is not None, "read with the connection"
        decided = Decided(self._clock.now())
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

    async def _write(self, decided: Decided, first_day: date) -> None:
        """Everything that was decided is committed, or nothing is."""
        codes = await self._number_codes(decided)
        assert self._connection is not None, "the transaction is on it"
        async with self._connection.pipeline() as pipeline:
            if decided.recorded:
                keys = [_code_of(one) for _, one in decided.recorded]
                numbers = [codes.get(key) or self._codes[key] for key in keys]
                await self._execute(sql.INSERT_EVENTS, *_event_columns(decided.recorded, numbers))
                added = sorted(decided.added.items())
                columns = _month_columns([month for month, _ in added], first_day)
                await self._execute(sql.ADD_TO_MONTHS, *columns, sql.array([count for _, count in added]))
            if decided.spending:
                integrations = sql.array([number for number, _ in decided.spending])
                days = sql.array([one.day for _, one in decided.spending])
                event_keys = sql.texts([one.event_key for _, one in decided.spending])
                bodies = sql.texts([one.body_key for _, one in decided.spending])
                proofs = sql.texts([one.proof_key for _, one in decided.spending])
                await self._execute(sql.INSERT_EVENT_IDS, integrations, event_keys, bodies, days)
                await self._execute(sql.INSERT_SPENT_PROOFS, integrations, proofs, days)
            if decided.signals:
                await self._execute(sql.ADD_TO_INTEGRITY_DAYS, *_signal_columns(decided))
            self._may_be_committed = True
            await self._execute("COMMIT")
            await pipeline.sync()
        # Only now are they there for everybody.
        if len(self._codes) > _REMEMBERED_MAX:
            self._codes.clear()
        self._codes.update(codes)

    async def _number_codes(self, decided: Decided) -> dict[tuple[str, str], int]:
        """The numbers of those Codes that this process has none for. They outlive every event of theirs."""
        unknown = {
            (number, one.event.xr_id): one.event for number, one in decided.recorded if _code_of(one) not in self._codes
        }
        if not unknown:
            return {}
        cursor = await self._execute(
            sql.PUT_CODES,
            sql.array([number for number, _ in unknown]),
            sql.texts([xr_id for _, xr_id in unknown]),
            sql.array([event.proof.campaign_id for event in unknown.values()]),
        )
        rows = await cursor.fetchall()
        return {(unknown[number, xr_id].integration_id, xr_id): code for number, xr_id, code in rows}

    async def _ensure_months(self, months: Sequence[tuple[str, str, date]]) -> None:
        """There is a row to lock for each; committed by itself, so that whoever comes second finds it."""
        missing = [month for month in months if month not in self._months]
        if missing:
            await self._execute(sql.ENSURE_MONTHS, *(sql.array(column) for column in zip(*missing, strict=True)))
            if len(self._months) > _REMEMBERED_MAX:
                self._months.clear()
            self._months.update(missing)

    async def _execute(self, statement: LiteralString, *values: str) -> psycopg.AsyncCursor[TupleRow]:
        assert self._connection is not None, "connected before"
        return await self._connection.execute(statement, values or None, prepare=bool(values), binary=True)

    async def _connect(self) -> None:
        self._connection = await self._db.dedicated_connection()
        self._months.clear()  # Whoever lost a connection may have lost more.
        await self._connection.execute(sql.SETTINGS)
        row = await (await self._connection.execute(sql.FIND_TRANSITION)).fetchone()
        assert row is not None, "the migration noted when it ran"
        self._transition_until = row[0] + TRANSITION

    async def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                await connection.close()


def _month_of(delivery: Delivery) -> Month:
    assert delivery.checked_by is not None, "an integration vouched for it"
    return delivery.checked_by.row.organization_id, delivery.checked_by.row.mode


def _number_of(delivery: Delivery) -> int:
    assert delivery.checked_by is not None, "an integration vouched for it"
    return delivery.checked_by.row.number


def _code_of(delivery: Delivery) -> tuple[str, str]:
    return delivery.event.integration_id, delivery.event.xr_id


def _month_columns(months: Sequence[Month], first_day: date) -> tuple[str, str, str]:
    organizations, modes = [month[0] for month in months], [month[1] for month in months]
    return sql.texts(organizations), sql.texts(modes), sql.array([first_day] * len(months))


def _event_columns(recorded: Sequence[tuple[int, Delivery]], codes: Sequence[int]) -> Iterable[str]:
    """The columns of `INSERT_EVENTS`."""
    events = [one.event for _, one in recorded]
    return (
        sql.array([one.token for _, one in recorded]),
        sql.array([number for number, _ in recorded]),
        sql.array([one.day for _, one in recorded]),
        sql.array(codes),
        sql.array([_ms_of_day(event.occurred_at) for event in events]),
        sql.array([event.receiver for event in events]),
        sql.array([None if event.country is None else country_number(event.country) for event in events]),
    )


def _signal_columns(decided: Decided) -> Iterable[str]:
    """The columns of `ADD_TO_INTEGRITY_DAYS`: by the UTC day of receipt."""
    signals = sorted(decided.signals.items())
    yield sql.array([number for number, _ in signals])
    yield sql.array([decided.now.date()] * len(signals))
    for place in range(3):
        yield sql.array([counted[place] for _, counted in signals])


def _ms_of_day(moment: datetime) -> int:
    return ((moment.hour * 60 + moment.minute) * 60 + moment.second) * _MS_OF_S + moment.microsecond // _MS_OF_S
