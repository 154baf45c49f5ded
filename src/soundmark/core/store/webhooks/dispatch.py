"""The tables `webhook_deliveries` and `webhook_endpoints`, as the dispatcher uses them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from soundmark.core.domain.webhooks.attempt import AHEAD_MAX, ENDPOINT_DISABLED, AttemptOutcome, ClaimedDelivery
from soundmark.core.domain.webhooks.endpoint import DisabledReason
from soundmark.kit.postgres.arrays import plain_array, text_array
from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class WaitingEndpoint:
    """An endpoint with pending deliveries, and when the next attempt of any of them is due."""

    organization_id: str
    endpoint_id: str
    is_enabled: bool
    is_failing: bool
    next_attempt_at: datetime


@dataclass(frozen=True, slots=True)
class Backlog:
    """The pending deliveries: how many, when the oldest was made, and since when the first of them is due."""

    pending_count: int
    oldest_created_at: datetime | None
    due_since: datetime | None


@dataclass(frozen=True, slots=True)
class TestedEndpoint:
    """What is needed to send a test to an endpoint."""

    project_id: str | None
    url: str
    sealed_secret: bytes = field(repr=False)
    sealed_earlier_secret: bytes | None = field(repr=False)
    earlier_secret_until: datetime | None


@dataclass(frozen=True, slots=True)
class _Postponed:
    organization_id: str


async def list_waiting(tx: Tx, *, after: tuple[str, str], limit: int) -> list[WaitingEndpoint]:
    """Return up to `limit` endpoints after `after` that have pending deliveries, outside any tenant.

    It jumps from one endpoint to the next in the index, however many deliveries an endpoint has. An endpoint that was
    deleted is not enabled.
    """
    return await tx.all(
        WaitingEndpoint,
        """
        WITH RECURSIVE waiting AS (
            (SELECT organization_id, endpoint_id, 1 AS place
               FROM webhook_deliveries
              WHERE status = 'pending'
                AND (organization_id, endpoint_id) > (%(organization_id)s, %(endpoint_id)s)
              ORDER BY organization_id, endpoint_id
              LIMIT 1)
            UNION ALL
            SELECT following.organization_id, following.endpoint_id, waiting.place + 1
              FROM waiting
             CROSS JOIN LATERAL (
                   SELECT organization_id, endpoint_id
                     FROM webhook_deliveries
                    WHERE status = 'pending'
                      AND (organization_id, endpoint_id) > (waiting.organization_id, waiting.endpoint_id)
                    ORDER BY organization_id, endpoint_id
                    LIMIT 1
                   ) AS following
             WHERE waiting.place < %(limit)s
        )
        SELECT waiting.organization_id, waiting.endpoint_id,
               coalesce(endpoint.enabled, false) AS is_enabled,
               endpoint.failing_since IS NOT NULL AS is_failing,
               (SELECT min(delivery.next_attempt_at)
                  FROM webhook_deliveries delivery
                 WHERE delivery.organization_id = waiting.organization_id
                   AND delivery.endpoint_id = waiting.endpoint_id
                   AND delivery.status = 'pending') AS next_attempt_at
          FROM waiting
          LEFT JOIN webhook_endpoints endpoint
                 ON endpoint.organization_id = waiting.organization_id AND endpoint.id = waiting.endpoint_id
        """,
        {"organization_id": after[0], "endpoint_id": after[1], "limit": limit},
    )


async def update_claimed(
    tx: Tx, organization_id: str, places: Mapping[str, int], *, now: datetime, lease_until: datetime
) -> list[ClaimedDelivery]:
    """Claim up to so many due deliveries of each endpoint, oldest first, and return them with all that is sent.

    Those that another worker is claiming are left out. They are looked up by an array of keys: for a join, a plan that
    was made before there were many deliveries would read all of the organisation's.
    """
    return await tx.all(
        ClaimedDelivery,
        """
        WITH chosen AS MATERIALIZED (
            SELECT due.id
              FROM unnest(%(endpoint_ids)s::text[], %(places)s::int[]) AS room (endpoint_id, places)
             CROSS JOIN LATERAL (
                   SELECT id
                     FROM webhook_deliveries
                    WHERE organization_id = %(organization_id)s
                      AND endpoint_id = room.endpoint_id
                      AND status = 'pending'
                      AND next_attempt_at <= %(now)s
                    ORDER BY next_attempt_at
                    LIMIT room.places
                      FOR NO KEY UPDATE SKIP LOCKED
                   ) AS due
        )
        UPDATE webhook_deliveries delivery
           SET next_attempt_at = %(lease_until)s
          FROM webhook_events event, webhook_endpoints endpoint
         WHERE delivery.organization_id = %(organization_id)s
           AND delivery.id = ANY(ARRAY(SELECT id FROM chosen))
           AND event.organization_id = %(organization_id)s
           AND event.id = delivery.event_id
           AND endpoint.organization_id = %(organization_id)s
           AND endpoint.id = delivery.endpoint_id
           AND endpoint.enabled
        RETURNING delivery.organization_id, delivery.id, delivery.endpoint_id, delivery.attempts,
                  delivery.next_attempt_at AS lease_until, event.id AS event_id, event.project_id,
                  event.type AS event_type, event.actor_type, event.actor_id, event.data,
                  event.created_at AS event_created_at, endpoint.url, endpoint.sealed_secret,
                  endpoint.sealed_earlier_secret, endpoint.earlier_secret_until, endpoint.failing_since,
                  event.traceparent
        """,
        {
            "organization_id": organization_id,
            "endpoint_ids": plain_array(places),
            "places": plain_array(places.values()),
            "now": now,
            "lease_until": lease_until,
        },
    )


async def notify_due(tx: Tx) -> None:
    """Wake the dispatchers once the transaction has committed: a delivery is due."""
    await tx.run("NOTIFY webhook_deliveries")


async def update_attempted(tx: Tx, organization_id: str, outcomes: Sequence[AttemptOutcome]) -> None:
    """Store what followed from attempts, unless another worker has stored a later attempt or a success."""
    await tx.run(
        """
        UPDATE webhook_deliveries delivery
           SET status = outcome.status,
               attempts = outcome.attempts,
               last_status_code = outcome.status_code,
               last_error = outcome.error,
               next_attempt_at = outcome.next_attempt_at
          FROM unnest(%(ids)s::text[], %(statuses)s::text[], %(attempts)s::int[], %(status_codes)s::int[],
                      %(errors)s::text[], %(next_attempts_at)s::timestamptz[])
               AS outcome (id, status, attempts, status_code, error, next_attempt_at)
         WHERE delivery.organization_id = %(organization_id)s
           AND delivery.id = outcome.id
           AND delivery.status = 'pending'
           AND (outcome.status = 'delivered' OR delivery.attempts < outcome.attempts)
        """,
        {
            "organization_id": organization_id,
            "ids": plain_array(outcome.delivery.id for outcome in outcomes),
            "statuses": plain_array(outcome.status for outcome in outcomes),
            "attempts": plain_array(outcome.attempts for outcome in outcomes),
            "status_codes": plain_array(outcome.status_code for outcome in outcomes),
            "errors": text_array(outcome.error for outcome in outcomes),
            "next_attempts_at": plain_array(
                None if outcome.next_attempt_at is None else f'"{outcome.next_attempt_at.isoformat()}"'
                for outcome in outcomes
            ),
        },
    )


async def update_failing(tx: Tx, organization_id: str, endpoint_ids: Sequence[str], *, now: datetime) -> None:
    """Note since when these endpoints take nothing, unless that is noted."""
    await tx.run(
        """
        UPDATE webhook_endpoints
           SET failing_since = %(now)s
         WHERE organization_id = %(organization_id)s
           AND id = ANY(%(endpoint_ids)s::text[])
           AND failing_since IS NULL
        """,
        {"organization_id": organization_id, "endpoint_ids": plain_array(endpoint_ids), "now": now},
    )


async def update_recovered(tx: Tx, organization_id: str, endpoint_ids: Sequence[str]) -> None:
    """Note that these endpoints take messages again."""
    await tx.run(
        """
        UPDATE webhook_endpoints
           SET failing_since = NULL
         WHERE organization_id = %(organization_id)s
           AND id = ANY(%(endpoint_ids)s::text[])
           AND failing_since IS NOT NULL
        """,
        {"organization_id": organization_id, "endpoint_ids": plain_array(endpoint_ids)},
    )


async def update_endpoint_disabled(
    tx: Tx, organization_id: str, endpoint_id: str, *, url: str, reason: DisabledReason, failing_since_max: datetime
) -> bool:
    """Disable an endpoint, unless its URL or its failures are no longer those of the attempt; return whether it did."""
    return bool(
        await tx.run(
            """
            UPDATE webhook_endpoints
               SET enabled = false,
                   disabled_reason = %(reason)s
             WHERE organization_id = %(organization_id)s
               AND id = %(endpoint_id)s
               AND enabled
               AND url = %(url)s
               AND (%(reason)s = 'gone' OR failing_since <= %(failing_since_max)s)
            """,
            {
                "organization_id": organization_id,
                "endpoint_id": endpoint_id,
                "url": url,
                "reason": reason,
                "failing_since_max": failing_since_max,
            },
        )
    )


async def update_undeliverable(tx: Tx, organization_id: str, endpoint_id: str, *, now: datetime, limit: int) -> int:
    """Let up to `limit` due deliveries of an endpoint fail that is disabled or was deleted; return how many there were.

    A replay sends what the endpoint missed.
    """
    return await tx.run(
        """
        WITH chosen AS MATERIALIZED (
            SELECT id
              FROM webhook_deliveries
             WHERE organization_id = %(organization_id)s
               AND endpoint_id = %(endpoint_id)s
               AND status = 'pending'
               AND next_attempt_at <= %(now)s
             LIMIT %(limit)s
               FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE webhook_deliveries delivery
           SET status = 'failed',
               last_error = %(error)s,
               next_attempt_at = NULL
          FROM chosen
         WHERE delivery.organization_id = %(organization_id)s
           AND delivery.id = chosen.id
           AND NOT EXISTS (
               SELECT
                 FROM webhook_endpoints
                WHERE organization_id = %(organization_id)s
                  AND id = %(endpoint_id)s
                  AND enabled
           )
        """,
        {
            "organization_id": organization_id,
            "endpoint_id": endpoint_id,
            "now": now,
            "limit": limit,
            "error": ENDPOINT_DISABLED,
        },
    )


async def update_released(
    tx: Tx, organization_id: str, delivery_ids: Sequence[str], *, lease_until: datetime, now: datetime
) -> None:
    """Give back claimed deliveries that were not attempted, so that anybody may attempt them at once."""
    await tx.run(
        """
        UPDATE webhook_deliveries
           SET next_attempt_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND id = ANY(%(delivery_ids)s::text[])
           AND status = 'pending'
           AND next_attempt_at = %(lease_until)s
        """,
        {
            "organization_id": organization_id,
            "delivery_ids": plain_array(delivery_ids),
            "lease_until": lease_until,
            "now": now,
        },
    )


async def find_tested(tx: Tx, organization_id: str, endpoint_id: str) -> TestedEndpoint | None:
    """Return what is needed to send a test to an endpoint."""
    return await tx.one_or_none(
        TestedEndpoint,
        """
        SELECT project_id, url, sealed_secret, sealed_earlier_secret, earlier_secret_until
          FROM webhook_endpoints
         WHERE organization_id = %(organization_id)s
           AND id = %(endpoint_id)s
        """,
        {"organization_id": organization_id, "endpoint_id": endpoint_id},
    )


async def list_postponed_tenants(tx: Tx, *, now: datetime, limit: int) -> list[str]:
    """Return organisations with a delivery whose next attempt is further ahead than any pause, outside any tenant."""
    rows = await tx.all(
        _Postponed,
        """
        SELECT DISTINCT organization_id
          FROM webhook_deliveries
         WHERE status = 'pending'
           AND next_attempt_at > %(now)s + (%(ahead_max)s::interval[])[attempts + 1]
         LIMIT %(limit)s
        """,
        {"now": now, "ahead_max": _spell_out(AHEAD_MAX), "limit": limit},
    )
    return [row.organization_id for row in rows]


async def update_postponed(tx: Tx, organization_id: str, *, now: datetime) -> int:
    """Make such deliveries of the organisation due; return how many there were."""
    return await tx.run(
        """
        UPDATE webhook_deliveries
           SET next_attempt_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND status = 'pending'
           AND next_attempt_at > %(now)s + (%(ahead_max)s::interval[])[attempts + 1]
        """,
        {"organization_id": organization_id, "now": now, "ahead_max": _spell_out(AHEAD_MAX)},
    )


async def find_backlog(tx: Tx, *, now: datetime) -> Backlog:
    """Return the pending deliveries of all organisations in figures, outside any tenant."""
    backlog = await tx.one_or_none(
        Backlog,
        """
        SELECT count(*) AS pending_count, min(created_at) AS oldest_created_at,
               min(next_attempt_at) FILTER (WHERE next_attempt_at <= %(now)s) AS due_since
          FROM webhook_deliveries
         WHERE status = 'pending'
        """,
        {"now": now},
    )
    assert backlog is not None, "a count always returns a row"
    return backlog


def _spell_out(pauses: Sequence[timedelta]) -> str:
    return plain_array(f'"{pause.total_seconds()} seconds"' for pause in pauses)
