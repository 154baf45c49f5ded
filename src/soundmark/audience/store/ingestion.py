"""Judging and storing events: each statement serves a whole batch.

Columns are sent as plain arrays, because none of their values needs quotes. A place is an index, from zero, into the
rows that a function was given.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from soundmark.audience.domain.integration import QuotaKey
from soundmark.kit.postgres.arrays import plain_array
from soundmark.kit.postgres.transaction import AnyTx, Tx

# These tables may grow by four orders of magnitude during one connection. Looking up every value in an index is right
# for these statements at any size, so they do that whatever the statistics said when they were planned.
_SETTINGS: Final = (
    "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; "
    "SET jit = off; SET statement_timeout = '4s'"
)
# For one transaction. Nothing is prepared then, so the planner sees the values.
_LOCAL_SETTINGS: Final = """
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
           set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
           set_config('jit', 'off', true), set_config('statement_timeout', '4s', true)
"""
_GENERIC_PLANS: Final = "SET plan_cache_mode = force_generic_plan"


class SourceRow(NamedTuple):
    """An integration, with its entitlement if it has one, and whether its organisation is suspended."""

    id: str
    number: int
    organization_id: str
    mode: str
    retention_days: int
    sealed_secret: bytes
    core_key_id: str
    core_public_key: bytes
    previous_key_id: str | None
    previous_public_key: bytes | None
    previous_until: datetime | None
    revoked_at: datetime | None
    monthly_event_quota: int | None
    ends_at: datetime | None
    is_suspended: bool


class EventRow(NamedTuple):
    """An event as it is stored."""

    token: int
    integration: int
    day: date
    code: int
    occurred_ms: int
    receiver: int
    country: int | None


async def prepare_connection(tx: Tx, *, is_pooled: bool, is_distributed: bool) -> datetime:
    """Set the planner options and timeouts of this connection; return when the transition of proofs began.

    The session of a pooled connection is another's the next moment, so there `prepare_transaction` sets them. Where the
    tables are distributed, the server needs the values of each statement to plan it.
    """
    if not is_pooled:
        await tx.run(_SETTINGS)
        if not is_distributed:
            await tx.run(_GENERIC_PLANS)
    ((began_at,),) = await tx.rows("SELECT began_at FROM proof_transition")
    assert isinstance(began_at, datetime), "the first revision noted when it ran"
    return began_at


async def prepare_transaction(tx: AnyTx) -> None:
    """Set the planner options and timeouts of this transaction alone."""
    await tx.run(_LOCAL_SETTINGS)


async def insert_months(tx: AnyTx, quotas: Collection[QuotaKey], first_day: date) -> None:
    """Insert the rows that `lock_months` locks, unless they are there.

    An organisation that has left has no integration, so it gets no row. Lock order: docs/locks.md.
    """
    await tx.run(
        """
        INSERT INTO event_months (organization_id, mode, first_day)
        SELECT given.organization_id, given.mode, given.first_day
          FROM unnest(%(organization_ids)s::text[], %(modes)s::text[], %(first_days)s::date[])
               AS given (organization_id, mode, first_day)
         CROSS JOIN LATERAL (
               SELECT integrations.number
                 FROM integrations
                WHERE integrations.organization_id = given.organization_id
                  AND integrations.mode = given.mode
                LIMIT 1
                  FOR KEY SHARE
         ) AS held
         ORDER BY given.organization_id, given.mode, given.first_day
            ON CONFLICT (organization_id, mode, first_day) DO NOTHING
        """,
        _month_columns(quotas, first_day),
    )


async def lock_months(tx: AnyTx, quotas: Collection[QuotaKey], first_day: date) -> dict[QuotaKey, int]:
    """Lock the months and return how many events each has recorded; a month without a row is missing.

    Always by organisation and mode, so that two batches never wait for each other. Lock order: docs/locks.md.
    """
    rows = await tx.rows(
        """
        SELECT months.organization_id, months.mode, months.events
          FROM unnest(%(organization_ids)s::text[], %(modes)s::text[], %(first_days)s::date[])
               AS given (organization_id, mode, first_day)
          JOIN event_months AS months USING (organization_id, mode, first_day)
         ORDER BY months.organization_id, months.mode
           FOR NO KEY UPDATE OF months
        """,
        _month_columns(quotas, first_day),
    )
    return {(organization_id, mode): count for organization_id, mode, count in rows}


async def find_sources(tx: AnyTx, ids: Iterable[str]) -> list[SourceRow]:
    """Return the integrations with these ids."""
    rows = await tx.rows(
        """
        SELECT integrations.id, integrations.number, integrations.organization_id, integrations.mode,
               integrations.retention_days, integrations.sealed_secret, integrations.core_key_id,
               integrations.core_public_key, integrations.previous_key_id, integrations.previous_public_key,
               integrations.previous_until, integrations.revoked_at, entitlements.monthly_event_quota,
               entitlements.ends_at, coalesce(suspensions.is_suspended, false)
          FROM integrations
          LEFT JOIN entitlements USING (organization_id, mode)
          LEFT JOIN suspensions USING (organization_id)
         WHERE integrations.id = ANY(%(ids)s::text[])
        """,
        {"ids": plain_array(ids)},
    )
    return [SourceRow._make(row) for row in rows]


async def find_event_bodies(tx: AnyTx, integrations: Sequence[int], event_keys: Sequence[str]) -> dict[int, str]:
    """Return the digests of the bodies of those events that are stored, by their places."""
    rows = await tx.rows(
        """
        SELECT given.place, event_ids.body
          FROM unnest(%(integrations)s::integer[], %(event_keys)s::uuid[])
               WITH ORDINALITY AS given (integration, event_id, place)
          JOIN event_ids USING (integration, event_id)
        """,
        {"integrations": plain_array(integrations), "event_keys": plain_array(event_keys)},
    )
    return {place - 1: body.hex for place, body in rows}


async def find_spent_proofs(tx: AnyTx, integrations: Sequence[int], proof_keys: Sequence[str]) -> list[int]:
    """Return the places of the proofs that are spent."""
    rows = await tx.rows(
        """
        SELECT given.place
          FROM unnest(%(integrations)s::integer[], %(proof_keys)s::uuid[])
               WITH ORDINALITY AS given (integration, proof, place)
          JOIN spent_proofs USING (integration, proof)
        """,
        {"integrations": plain_array(integrations), "proof_keys": plain_array(proof_keys)},
    )
    return [place - 1 for (place,) in rows]


async def find_pairs(tx: AnyTx, pairs: Sequence[tuple[int, str, date, int]]) -> list[int]:
    """Return the places of the pairs, given as (integration, Code, day, token), that are recorded."""
    rows = await tx.rows(
        """
        SELECT given.place
          FROM unnest(%(integrations)s::integer[], %(xr_ids)s::text[], %(days)s::date[], %(tokens)s::bigint[])
               WITH ORDINALITY AS given (integration, xr_id, day, token, place)
          JOIN measured_codes USING (integration, xr_id)
          JOIN events ON events.integration = given.integration
                     AND events.day = given.day
                     AND events.token = given.token
                     AND events.code = measured_codes.number
        """,
        _columns(pairs, "integrations", "xr_ids", "days", "tokens"),
    )
    return [place - 1 for (place,) in rows]


async def insert_codes(tx: AnyTx, codes: Sequence[tuple[int, str, str | None]]) -> list[tuple[Any, ...]]:
    """Give numbers to Codes, given as (integration, Code, campaign); return (integration, Code, number) of each.

    A Code that has a number already keeps it. The numbers count up in each integration, whose month is locked. At the
    turn of a month two transactions may lock different rows and choose one number: the second fails, and is judged
    again.
    """
    return await tx.rows(
        """
        INSERT INTO measured_codes (integration, number, xr_id, campaign_id)
        SELECT given.integration,
               coalesce(last.number, 0) + row_number() OVER (PARTITION BY given.integration ORDER BY given.xr_id),
               given.xr_id, given.campaign_id
          FROM unnest(%(integrations)s::integer[], %(xr_ids)s::text[], %(campaign_ids)s::text[])
               AS given (integration, xr_id, campaign_id)
          LEFT JOIN LATERAL (
               SELECT numbered.number
                 FROM measured_codes AS numbered
                WHERE numbered.integration = given.integration
                ORDER BY numbered.number DESC
                LIMIT 1
               ) AS last ON true
         ORDER BY given.integration, given.xr_id
            ON CONFLICT (integration, xr_id) DO UPDATE
           SET xr_id = excluded.xr_id
        RETURNING integration, xr_id, number
        """,
        _columns(codes, "integrations", "xr_ids", "campaign_ids"),
    )


async def insert_events(tx: AnyTx, events: Sequence[EventRow]) -> None:
    """Insert new events."""
    await tx.run(
        """
        INSERT INTO events (token, integration, day, code, occurred_ms, receiver, country)
        SELECT *
          FROM unnest(%(token)s::bigint[], %(integration)s::integer[], %(day)s::date[], %(code)s::integer[],
                      %(occurred_ms)s::integer[], %(receiver)s::smallint[], %(country)s::smallint[])
        """,
        _columns(events, *EventRow._fields),
    )


async def insert_event_ids(tx: AnyTx, ids: Sequence[tuple[int, str, str, date]]) -> None:
    """Insert event ids, given as (integration, event id, body, day)."""
    await tx.run(
        """
        INSERT INTO event_ids (integration, event_id, body, day)
        SELECT *
          FROM unnest(%(integrations)s::integer[], %(event_ids)s::uuid[], %(bodies)s::uuid[], %(days)s::date[])
        """,
        _columns(ids, "integrations", "event_ids", "bodies", "days"),
    )


async def insert_spent_proofs(tx: AnyTx, proofs: Sequence[tuple[int, str, date]]) -> None:
    """Insert spent proofs, given as (integration, proof, day)."""
    await tx.run(
        """
        INSERT INTO spent_proofs (integration, proof, day)
        SELECT *
          FROM unnest(%(integrations)s::integer[], %(proofs)s::uuid[], %(days)s::date[])
        """,
        _columns(proofs, "integrations", "proofs", "days"),
    )


async def update_months(tx: AnyTx, counts: Mapping[QuotaKey, int], first_day: date) -> None:
    """Add recorded events to their locked months."""
    await tx.run(
        """
        UPDATE event_months AS months
           SET events = months.events + given.events
          FROM unnest(%(organization_ids)s::text[], %(modes)s::text[], %(first_days)s::date[], %(counts)s::bigint[])
               AS given (organization_id, mode, first_day, events)
         WHERE months.organization_id = given.organization_id
           AND months.mode = given.mode
           AND months.first_day = given.first_day
        """,
        {**_month_columns(counts, first_day), "counts": plain_array(counts.values())},
    )


async def update_integrity_days(tx: AnyTx, day: date, signals: Sequence[Sequence[int]]) -> None:
    """Add to the counts of a day, given as (integration, event replays, token duplicates, proof replays)."""
    await tx.run(
        """
        INSERT INTO integrity_days AS days (integration, day, event_replays, code_token_duplicates, proof_replays)
        SELECT *
          FROM unnest(%(integrations)s::integer[], %(days)s::date[], %(event_replays)s::bigint[],
                      %(token_duplicates)s::bigint[], %(proof_replays)s::bigint[])
            ON CONFLICT (integration, day) DO UPDATE
           SET event_replays = days.event_replays + excluded.event_replays,
               code_token_duplicates = days.code_token_duplicates + excluded.code_token_duplicates,
               proof_replays = days.proof_replays + excluded.proof_replays
        """,
        {
            **_columns(signals, "integrations", "event_replays", "token_duplicates", "proof_replays"),
            "days": plain_array([day] * len(signals)),
        },
    )


def _columns(rows: Iterable[Sequence[object]], *names: str) -> dict[str, str]:
    return dict(zip(names, map(plain_array, zip(*rows, strict=True)), strict=True))


def _month_columns(quotas: Collection[QuotaKey], first_day: date) -> dict[str, str]:
    rows = [(organization_id, mode, first_day) for organization_id, mode in quotas]
    return _columns(rows, "organization_ids", "modes", "first_days")
