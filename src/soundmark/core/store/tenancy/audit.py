"""The table `audit_entries`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

from soundmark.core.domain.tenancy.audit import AuditAction, AuditEntry, AuditIntent, FinalOutcome, Stage
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.kit.postgres.arrays import text_array
from soundmark.kit.postgres.transaction import AnyTx, Tx
from soundmark.kit.text.paging import Position
from soundmark.kit.tracing.context import find_traceparent

_BEGINNING_OF_TIME: Final = datetime.min.replace(tzinfo=UTC)
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)


async def insert(tx: AnyTx, entries: Sequence[AuditEntry], *, stage: Stage) -> None:
    """Insert entries of one organisation, made at the same time, and the notes by which they will be sealed.

    If the organisation has webhook endpoints, each completed entry is also an act. That of a batch names its Codes, and
    that of a revoked selection is announced by the command that knows them.
    """
    first = entries[0]
    tx.announce(first.organization_id)
    await tx.run(
        """
        WITH fresh AS (
            SELECT *
              FROM unnest(%(ids)s::text[], %(project_ids)s::text[], %(actions)s::text[], %(actor_types)s::text[],
                          %(actor_ids)s::text[], %(metadata)s::text[], %(traceparents)s::text[])
                   AS fresh (id, project_id, action, actor_type, actor_id, metadata, traceparent)
        ), recorded AS (
            INSERT INTO audit_entries
                   (organization_id, id, project_id, action, actor_type, actor_id, outcome, metadata, created_at,
                    finalised_at)
            SELECT %(organization_id)s, id, project_id, action, actor_type, actor_id, %(outcome)s, metadata,
                   %(created_at)s, %(finalised_at)s
              FROM fresh
        ), listening AS (
            SELECT array_agg(id) AS endpoint_ids
              FROM webhook_endpoints
             WHERE organization_id = %(organization_id)s
        ), announced AS (
            INSERT INTO webhook_acts
                   (organization_id, id, project_id, type, actor_type, actor_id, data, xr_ids, endpoint_ids,
                    traceparent, created_at)
            SELECT %(organization_id)s, id, project_id,
                   CASE action WHEN 'code.batch_issued' THEN 'code.issued' ELSE action END,
                   actor_type, actor_id, metadata,
                   CASE action WHEN 'code.batch_issued'
                               THEN ARRAY(SELECT jsonb_array_elements_text(metadata::jsonb -> 'xr_ids')) END,
                   endpoint_ids, traceparent, %(created_at)s
              FROM fresh CROSS JOIN listening
             WHERE endpoint_ids IS NOT NULL
               AND %(outcome)s = 'completed'
               AND action <> 'code.batch_revoked'
        )
        INSERT INTO audit_unsealed (organization_id, entry_id, stage, created_at)
        SELECT %(organization_id)s, id, %(stage)s, %(created_at)s
          FROM fresh
        """,
        {
            "organization_id": first.organization_id,
            "outcome": first.outcome,
            "created_at": first.created_at,
            "finalised_at": first.finalised_at,
            "stage": stage,
            "ids": text_array(entry.id for entry in entries),
            "project_ids": text_array(entry.project_id for entry in entries),
            "actions": text_array(entry.action for entry in entries),
            "actor_types": text_array(entry.actor_type for entry in entries),
            "actor_ids": text_array(entry.actor_id for entry in entries),
            "metadata": text_array(entry.metadata for entry in entries),
            "traceparents": text_array(entry.traceparent for entry in entries),
        },
    )


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of entries; None matches everything. Created at or after `from_at`, and before `to_at`."""

    action: AuditAction | None = None
    actor_id: str | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None


async def list_newest_first(
    tx: AnyTx, scope: TenantScope, filters: AuditFilter, *, before: Position | None, limit: int
) -> list[AuditEntry]:
    """Return up to `limit` entries of the organisation that match the filter, newest first, after position `before`.

    A download runs this hundreds of times, so each page must start in the index where the previous page ended. The
    times are therefore bounds, not `IS NULL OR`, and bare parameters: under row-level security, no other expression can
    use an index. The seal of each entry is looked up by its key (`LIMIT 1`), as in `audit_chain.list_waiting`.
    """
    # Every entry that matches is older than `to_at`, and so is every entry after it.
    before = before or Position(filters.to_at or _END_OF_TIME, "")
    return await tx.all(
        AuditEntry,
        """
        SELECT e.*, s.chain_position AS position, s.chain_hash
          FROM (
                   SELECT id, organization_id, project_id, action, actor_type, actor_id, outcome, metadata, created_at,
                          finalised_at
                     FROM audit_entries
                    WHERE organization_id = %(organization_id)s
                      AND (%(action)s::text IS NULL OR action = %(action)s)
                      AND (%(actor_id)s::text IS NULL OR actor_id = %(actor_id)s)
                      AND created_at >= %(from_at)s::timestamptz
                      AND (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::text)
                    ORDER BY created_at DESC, id DESC
                    LIMIT %(limit)s
               ) e
          LEFT JOIN LATERAL (
                   SELECT chain_position, chain_hash
                     FROM audit_seals
                    WHERE organization_id = %(organization_id)s AND entry_id = e.id AND stage = 'final'
                    LIMIT 1
               ) s ON true
         ORDER BY e.created_at DESC, e.id DESC
        """,
        {
            "organization_id": scope.organization_id,
            "action": filters.action,
            "actor_id": filters.actor_id,
            "from_at": filters.from_at or _BEGINNING_OF_TIME,
            "before_at": before.created_at,
            "before_id": before.id,
            "limit": limit,
        },
    )


async def update_outcome(tx: Tx, intent: AuditIntent, *, outcome: FinalOutcome, now: datetime) -> bool:
    """Set the outcome of a requested entry, which must then be sealed again; return whether this changed the entry.

    The entry must match the tenant and action of the intent. The first outcome stays: a second caller waits for the
    first, and gets False. If the organisation has webhook endpoints, an entry that is completed is also an act.
    """
    tx.announce(intent.organization_id)
    finalised = await tx.value(
        """
        WITH entry AS (
            UPDATE audit_entries
               SET outcome      = %(outcome)s,
                   finalised_at = %(now)s
             WHERE organization_id = %(organization_id)s
               AND id = %(id)s
               AND action = %(action)s
               AND project_id IS NOT DISTINCT FROM %(project_id)s::text
               AND outcome = 'requested'
            RETURNING organization_id, id, project_id, action, actor_type, actor_id, metadata
        ), noted AS (
            INSERT INTO audit_unsealed (organization_id, entry_id, stage, created_at)
            SELECT organization_id, id, 'final', %(now)s
              FROM entry
        ), listening AS (
            SELECT array_agg(id) AS endpoint_ids
              FROM webhook_endpoints
             WHERE organization_id = %(organization_id)s
        ), announced AS (
            INSERT INTO webhook_acts
                   (organization_id, id, project_id, type, actor_type, actor_id, data, endpoint_ids, traceparent,
                    created_at)
            SELECT organization_id, id, project_id, action, actor_type, actor_id, metadata, endpoint_ids,
                   %(traceparent)s::text, %(now)s
              FROM entry CROSS JOIN listening
             WHERE endpoint_ids IS NOT NULL
               AND %(outcome)s = 'completed'
        )
        SELECT count(*) FROM entry
        """,
        {**asdict(intent), "outcome": outcome, "traceparent": find_traceparent(), "now": now},
    )
    return bool(finalised)


async def list_requested(tx: Tx, *, before: datetime, after: Position | None, limit: int) -> list[AuditIntent]:
    """Return up to `limit` entries, of every tenant, that were requested before `before` and have no outcome."""
    return await tx.all(
        AuditIntent,
        """
        SELECT organization_id, id, project_id, action, created_at
          FROM audit_entries
         WHERE outcome = 'requested'
           AND created_at < %(before)s
           AND (created_at, id) > (COALESCE(%(after_at)s::timestamptz, '-infinity'), COALESCE(%(after_id)s::text, ''))
         ORDER BY created_at, id
         LIMIT %(limit)s
        """,
        {"before": before, "after_at": after and after.created_at, "after_id": after and after.id, "limit": limit},
    )
