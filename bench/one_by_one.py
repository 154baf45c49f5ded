"""Ingestion in its simplest form: a transaction for each event, on a connection pool.

The same reading, verification and answers, in the same hot endpoint; only the storing differs.
"""

import asyncio
from typing import Any, Final

from psycopg_pool import AsyncConnectionPool

from soundmark.audience.domain.packing import country_number
from soundmark.audience.hot.ingest import Ingest
from soundmark.audience.hot.integration_state import TRANSITION, IntegrationState, refusal_at, source_of
from soundmark.audience.hot.pending_event import RECORDED, Outcome, PendingEvent
from soundmark.audience.secrets import open_hmac_secret
from soundmark.audience.store import ingestion
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.http.limits.local import LocalRateLimit
from soundmark.kit.http.requests.client_address import AddressDigest, AddressReader
from soundmark.kit.http.requests.refusals import ClientAddresses, RefusalLimit
from soundmark.kit.http.responses.problems import Problem
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.months import month_of
from soundmark.settings import AudienceSettings

_CONNECTIONS: Final = 16
_INSERT_ID: Final = "INSERT INTO event_ids VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
_INSERT_PROOF: Final = "INSERT INTO spent_proofs VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_INSERT_EVENT: Final = """
    INSERT INTO events (token, integration, day, code, occurred_ms, receiver, country)
    VALUES (%s, %s, %s, (SELECT number FROM measured_codes WHERE integration = %s AND xr_id = %s), %s, %s, %s)
    ON CONFLICT DO NOTHING
"""
_COUNT: Final = """
    INSERT INTO event_months AS months VALUES (%s, %s, %s, 1)
    ON CONFLICT (organization_id, mode, first_day) DO UPDATE SET events = months.events + 1 WHERE months.events < %s
"""


class _Unexpected(Exception):
    """The refusal of an event, which a benchmark never delivers."""


class OneByOne:
    """Takes events like `Ingest`, and connects on the first one."""

    def __init__(self, settings: AudienceSettings) -> None:
        self._pool: Final = AsyncConnectionPool(
            settings.audience_database_url.reveal(),
            min_size=_CONNECTIONS,
            max_size=_CONNECTIONS,
            open=False,
            kwargs={"autocommit": True},
        )
        self._sealer: Final = Sealer(parse_master_key(settings.master_key.reveal()), SystemEntropy())
        self._clock: Final = SystemClock()
        self._opening: asyncio.Task[None] | None = None
        clients = ClientAddresses(AddressReader(()), AddressDigest(SystemEntropy()), self._clock)
        unlimited = LocalRateLimit(1_000_000_000, 1, self._clock)
        self._ingest: Final = Ingest(
            SystemEntropy(),
            self,  # type: ignore[arg-type]  # it delivers like the real one
            base_url="",
            clients=clients,
            refused=RefusalLimit("events", unlimited),
            credentials=(),
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._ingest(scope, receive, send)

    async def deliver(self, delivery: PendingEvent) -> Outcome:
        """Judge and store one event, and commit."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._pool.open())
        await self._opening
        async with self._pool.connection() as connection, connection.transaction():
            (row,) = await ingestion.find_sources(Tx(connection), [delivery.unread.integration_id or ""])
            source = source_of(row, open_hmac_secret(self._sealer, row.id, row.sealed_secret))
            problem = self._refusal(delivery, source)
            if problem is not None:
                return problem
            await self._store(connection, delivery, source)
        return RECORDED

    def _refusal(self, delivery: PendingEvent, source: IntegrationState) -> Problem | None:
        delivery.check(source, b"k" * 32)
        now = self._clock.now()
        return delivery.refusal or refusal_at(source, delivery.event, now, transition_until=now - TRANSITION)

    async def _store(self, connection: Any, one: PendingEvent, source: IntegrationState) -> None:
        number, event, row = source.row.number, one.event, source.row
        at = event.occurred_at
        occurred_ms = ((at.hour * 60 + at.minute) * 60 + at.second) * 1000 + at.microsecond // 1000
        country = None if event.country is None else country_number(event.country)
        month = (row.organization_id, row.mode, month_of(self._clock.now()).first_day)
        pair = (one.token, number, one.day, number, event.xr_id, occurred_ms, event.receiver, country)
        async with connection.pipeline():
            steps = [
                await connection.execute(_INSERT_ID, (number, one.event_key, one.body_key, one.day)),
                await connection.execute(_INSERT_PROOF, (number, one.proof_key, one.day)),
                await connection.execute(_INSERT_EVENT, pair),
                # Last, because the lock on the counter holds up everybody else until the commit.
                await connection.execute(_COUNT, (*month, source.monthly_quota)),
            ]
        if any(step.rowcount != 1 for step in steps):
            raise _Unexpected
