"""The data of reports: events by ranges of tokens, Codes, and counters of integrity."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import numpy as np
from psycopg.rows import class_row

from soundmark.audience.domain.aggregation import NO_COUNTRY, Codes, PackedDay
from soundmark.kit.postgres.transaction import Tx

DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Span:
    """A period in UTC days: from `from_ms` of the first day, inclusive, to `to_ms` of the last day, exclusive."""

    first_day: date
    from_ms: int
    last_day: date
    to_ms: int

    def days(self) -> list[date]:
        """Return each day of the period; none if the last precedes the first."""
        count = (self.last_day - self.first_day).days + 1
        return [self.first_day + timedelta(days=number) for number in range(count)]


@dataclass(frozen=True, slots=True)
class IntegrityCounts:
    """The counters of a day."""

    day: date
    event_replays: int
    code_token_duplicates: int
    proof_replays: int


@dataclass(frozen=True, slots=True)
class CodeNames:
    """The Code and campaign that a number represents."""

    number: int
    xr_id: str
    campaign_id: str | None


@dataclass(frozen=True, slots=True)
class _Numbers:
    numbers: bytes | None
    campaigns: bytes | None


@dataclass(frozen=True, slots=True)
class _Day:
    day: date
    tokens: bytes
    codes: bytes
    receivers: bytes
    countries: bytes


async def keep_to_index(tx: Tx) -> None:
    """Make statements read the indexes until the transaction ends, whatever the statistics say.

    The index of events has the order that a report needs. A planner with old statistics would read the whole table for
    each range of tokens.
    """
    await tx.run(
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashagg = off; "
        "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL max_parallel_workers_per_gather = 0; "
        "SET LOCAL jit = off"
    )


async def get_codes(tx: Tx, integration: int, *, campaign_id: str | None, xr_id: str | None) -> Codes:
    """Return the measured Codes of the integration, or those of one campaign, or one Code."""
    async with tx.connection.cursor(binary=True, row_factory=class_row(_Numbers)) as cursor:
        await cursor.execute(
            """
            SELECT string_agg(int4send(number), ''::bytea ORDER BY number) AS numbers,
                   string_agg(int4send(first_number), ''::bytea ORDER BY number) AS campaigns
              FROM (SELECT number, min(number) OVER (PARTITION BY campaign_id) AS first_number
                      FROM measured_codes
                     WHERE integration = %(integration)s
                       AND (%(campaign_id)s::text IS NULL OR campaign_id = %(campaign_id)s::text)
                       AND (%(xr_id)s::text IS NULL OR xr_id = %(xr_id)s::text)) AS wanted
            """,
            {"integration": integration, "campaign_id": campaign_id, "xr_id": xr_id},
        )
        row = await cursor.fetchone()
    assert row is not None, "an aggregate returns a row"
    return Codes(_numbers(row.numbers), _numbers(row.campaigns))


async def list_events(
    tx: Tx, integration: int, span: Span, *, tokens: tuple[int, int], codes: list[int] | None
) -> list[PackedDay]:
    """Return the events whose tokens lie in the range `tokens`, of these Codes; None means all Codes."""
    # The server packs the columns, because making Python objects of ten million rows would take longer than everything
    # else. Only the index is read, once for each day, in the order of days and tokens.
    async with tx.connection.cursor(binary=True, row_factory=class_row(_Day)) as cursor:
        await cursor.execute(
            """
            SELECT day,
                   string_agg(int8send(token), ''::bytea) AS tokens,
                   string_agg(int4send(code), ''::bytea) AS codes,
                   string_agg(int2send(receiver), ''::bytea) AS receivers,
                   string_agg(int2send(coalesce(country, %(no_country)s::smallint)), ''::bytea) AS countries
              FROM events
             WHERE integration = %(integration)s
               AND day = ANY(%(days)s)
               AND token BETWEEN %(first_token)s AND %(last_token)s
               AND (day > %(first_day)s OR occurred_ms >= %(from_ms)s)
               AND (day < %(last_day)s OR occurred_ms < %(to_ms)s)
               AND (%(codes)s::integer[] IS NULL OR code = ANY(%(codes)s::integer[]))
             GROUP BY day
            """,
            {
                "no_country": NO_COUNTRY,
                "integration": integration,
                "days": span.days(),
                "first_token": tokens[0],
                "last_token": tokens[1],
                "first_day": span.first_day,
                "from_ms": span.from_ms,
                "last_day": span.last_day,
                "to_ms": span.to_ms,
                "codes": codes,
            },
        )
        rows = await cursor.fetchall()
    return [
        PackedDay((row.day - span.first_day).days, row.tokens, row.codes, row.receivers, row.countries) for row in rows
    ]


async def list_code_names(tx: Tx, integration: int, numbers: list[int]) -> list[CodeNames]:
    """Return the Codes of the integration that these numbers represent."""
    return await tx.all(
        CodeNames,
        """
        SELECT number, xr_id, campaign_id
          FROM measured_codes
         WHERE integration = %(integration)s
           AND number = ANY(%(numbers)s)
        """,
        {"integration": integration, "numbers": numbers},
    )


async def list_integrity_days(tx: Tx, integration: int, *, first_day: date, last_day: date) -> list[IntegrityCounts]:
    """Return the counters of these days, ascending; a day without any is missing."""
    return await tx.all(
        IntegrityCounts,
        """
        SELECT day, event_replays, code_token_duplicates, proof_replays
          FROM integrity_days
         WHERE integration = %(integration)s
           AND day BETWEEN %(first_day)s AND %(last_day)s
         ORDER BY day
        """,
        {"integration": integration, "first_day": first_day, "last_day": last_day},
    )


def _numbers(packed: bytes | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.frombuffer(packed or b"", dtype=np.dtype(">i4")).astype(np.int64)
