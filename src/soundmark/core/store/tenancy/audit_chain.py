"""The tables `audit_unsealed`, `audit_seals` and `audit_heads`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from soundmark.core.domain.tenancy.audit import AuditOutcome, Stage
from soundmark.core.domain.tenancy.audit_chain import CHAIN_BEGINNING, ChainLink, Head, SealedContent, Waiting
from soundmark.core.domain.tenancy.scope import ActorType
from soundmark.kit.postgres.arrays import bytes_array, plain_array, text_array
from soundmark.kit.postgres.transaction import AnyTx, Tx


async def list_waiting_tenants(tx: Tx, *, after: str, limit: int) -> list[str]:
    """Return the ids of up to `limit` organisations after `after` that have an unsealed entry, outside any tenant."""
    rows = await tx.all(
        _Tenant,
        """
        SELECT DISTINCT organization_id
          FROM audit_unsealed
         WHERE organization_id > %(after)s
         ORDER BY organization_id
         LIMIT %(limit)s
        """,
        {"after": after, "limit": limit},
    )
    return [row.organization_id for row in rows]


async def hold_tenant(tx: AnyTx, organization_id: str) -> bool:
    """Keep the organisation from being deleted until the transaction ends; return False if it is gone or locked."""
    held = await tx.value(
        "SELECT 1 FROM organizations WHERE id = %(organization_id)s FOR KEY SHARE SKIP LOCKED",
        {"organization_id": organization_id},
    )
    return held is not None


async def insert_head(tx: AnyTx, organization_id: str, *, genesis: bytes) -> None:
    """Insert the head of an empty chain, unless the chain has one."""
    await tx.run(
        """
        INSERT INTO audit_heads (organization_id, position, entry_id, seal, chain_position, chain_hash)
        VALUES (%(organization_id)s, 0, NULL, %(genesis)s, 0, %(chain_beginning)s)
            ON CONFLICT (organization_id) DO NOTHING
        """,
        {"organization_id": organization_id, "genesis": genesis, "chain_beginning": CHAIN_BEGINNING},
    )


async def lock_head(tx: AnyTx, organization_id: str) -> Head | None:
    """Lock the head of the chain; return None if there is none or another process holds it. Never waits."""
    return await tx.one_or_none(
        Head,
        """
        SELECT position, entry_id, seal, chain_position, chain_hash
          FROM audit_heads
         WHERE organization_id = %(organization_id)s
           FOR NO KEY UPDATE SKIP LOCKED
        """,
        {"organization_id": organization_id},
    )


async def find_head(tx: Tx, organization_id: str) -> Head | None:
    """Return the head of the chain."""
    return await tx.one_or_none(
        Head,
        """
        SELECT position, entry_id, seal, chain_position, chain_hash
          FROM audit_heads
         WHERE organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id},
    )


async def find_last_seal(tx: AnyTx, organization_id: str) -> ChainLink | None:
    """Return the link with the highest position, unless even that is before the head's.

    The head's position bounds what is read. Without it, a plan that was made when the table was empty reads and sorts
    all seals of the organisation.
    """
    return await tx.one_or_none(
        ChainLink,
        """
        SELECT position, entry_id, stage, seal, chain_position, chain_hash
          FROM audit_seals
         WHERE organization_id = %(organization_id)s
           AND position >= (SELECT position FROM audit_heads WHERE organization_id = %(organization_id)s)
         ORDER BY position DESC
         LIMIT 1
        """,
        {"organization_id": organization_id},
    )


async def list_waiting(tx: AnyTx, organization_id: str, *, limit: int) -> list[Waiting]:
    """Return up to `limit` unsealed stages, roughly in the order in which they were written.

    Each entry and seal is looked up by itself (`LIMIT 1`): for a join, a plan that was made when the tables were empty
    would read all of the organisation's. That the look-up uses an index is the session's setting: record 57.
    """
    rows = await tx.all(
        _WaitingRow,
        """
        SELECT e.organization_id, e.id, e.project_id, e.action, e.actor_type, e.actor_id, e.outcome, e.metadata,
               EXTRACT(epoch FROM e.created_at)::text AS created_s,
               EXTRACT(epoch FROM e.finalised_at)::text AS finalised_s,
               u.stage, u.created_at::text AS noted_at, s.entry_id IS NOT NULL AS is_sealed
          FROM (
                   SELECT organization_id, entry_id, stage, created_at
                     FROM audit_unsealed
                    WHERE organization_id = %(organization_id)s
                    ORDER BY created_at, entry_id, stage DESC
                    LIMIT %(limit)s
               ) u
         CROSS JOIN LATERAL (
                   SELECT *
                     FROM audit_entries
                    WHERE organization_id = %(organization_id)s AND id = u.entry_id
                    LIMIT 1
               ) e
          LEFT JOIN LATERAL (
                   SELECT entry_id
                     FROM audit_seals
                    WHERE organization_id = %(organization_id)s AND entry_id = u.entry_id AND stage = u.stage
                    LIMIT 1
               ) s ON true
         ORDER BY u.created_at, u.entry_id, u.stage DESC
        """,
        {"organization_id": organization_id, "limit": limit},
    )
    return [Waiting(row.content(), row.stage, row.noted_at, row.is_sealed) for row in rows]


async def insert_seals(tx: AnyTx, organization_id: str, seals: Sequence[ChainLink]) -> None:
    """Insert the next links of the chain."""
    await tx.run(
        """
        INSERT INTO audit_seals (organization_id, position, entry_id, stage, seal, chain_position, chain_hash)
        SELECT %(organization_id)s, position, entry_id, stage, seal, chain_position, chain_hash
          FROM unnest(%(positions)s::bigint[], %(entry_ids)s::text[], %(stages)s::text[], %(seals)s::bytea[],
                      %(chain_positions)s::bigint[], %(chain_hashes)s::bytea[])
               AS link (position, entry_id, stage, seal, chain_position, chain_hash)
        """,
        {
            "organization_id": organization_id,
            "positions": plain_array(seal.position for seal in seals),
            "entry_ids": text_array(seal.entry_id for seal in seals),
            "stages": text_array(seal.stage for seal in seals),
            "seals": bytes_array(seal.seal for seal in seals),
            "chain_positions": plain_array(seal.chain_position for seal in seals),
            "chain_hashes": bytes_array(seal.chain_hash for seal in seals),
        },
    )


async def update_head(tx: AnyTx, organization_id: str, head: Head) -> None:
    """Move the locked head to the last link of each chain."""
    await tx.run(
        """
        UPDATE audit_heads
           SET position       = %(position)s,
               entry_id       = %(entry_id)s,
               seal           = %(seal)s,
               chain_position = %(chain_position)s,
               chain_hash     = %(chain_hash)s
         WHERE organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id, **asdict(head)},
    )


async def insert_grown(tx: AnyTx, organization_id: str) -> None:
    """Note that the locked head must be entered into the transparency log, unless that is noted."""
    await tx.run(
        """
        INSERT INTO audit_unlogged (organization_id)
        VALUES (%(organization_id)s)
            ON CONFLICT (organization_id) DO NOTHING
        """,
        {"organization_id": organization_id},
    )


async def delete_waiting(tx: AnyTx, organization_id: str, sealed: Sequence[Waiting]) -> None:
    """Delete the notes of stages that are sealed, but for those that a deletion of their entries has locked.

    Never waits: that deletion may wait for one of these notes itself. If it fails, the next sealing deletes the rest.
    """
    await tx.run(
        """
        WITH notes AS (
            SELECT u.created_at, u.entry_id, u.stage
              FROM unnest(%(noted_ats)s::text[]::timestamptz[], %(entry_ids)s::text[], %(stages)s::text[])
                   AS sealed (created_at, entry_id, stage)
             CROSS JOIN LATERAL (
                       SELECT created_at, entry_id, stage
                         FROM audit_unsealed
                        WHERE organization_id = %(organization_id)s
                          AND created_at = sealed.created_at
                          AND entry_id = sealed.entry_id
                          AND stage = sealed.stage
                        LIMIT 1
                          FOR UPDATE SKIP LOCKED
                   ) u
        )
        DELETE FROM audit_unsealed u
         USING notes
         WHERE u.organization_id = %(organization_id)s
           AND u.created_at = notes.created_at
           AND u.entry_id = notes.entry_id
           AND u.stage = notes.stage
        """,
        {
            "organization_id": organization_id,
            "noted_ats": text_array(waiting.noted_at for waiting in sealed),
            "entry_ids": text_array(waiting.content.id for waiting in sealed),
            "stages": text_array(waiting.stage for waiting in sealed),
        },
    )


async def list_links(
    tx: Tx, organization_id: str, *, after: int, limit: int
) -> list[tuple[ChainLink, SealedContent | None]]:
    """Return up to `limit` links after position `after`, in order, each with its entry, or None if that is gone."""
    rows = await tx.all(
        _LinkRow,
        """
        SELECT s.organization_id, s.entry_id AS id, e.project_id, e.action, e.actor_type, e.actor_id, e.outcome,
               e.metadata,
               EXTRACT(epoch FROM e.created_at)::text AS created_s,
               EXTRACT(epoch FROM e.finalised_at)::text AS finalised_s,
               s.stage, s.position, s.seal, s.chain_position, s.chain_hash, e.id IS NOT NULL AS is_there
          FROM audit_seals s
          LEFT JOIN LATERAL (
                   SELECT *
                     FROM audit_entries
                    WHERE organization_id = %(organization_id)s AND id = s.entry_id
                    LIMIT 1
               ) e ON true
         WHERE s.organization_id = %(organization_id)s
           AND s.position > %(after)s
         ORDER BY s.position
         LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "after": after, "limit": limit},
    )
    return [
        (
            ChainLink(row.position, row.id, row.stage, row.seal, row.chain_position, row.chain_hash),
            row.content() if row.is_there else None,
        )
        for row in rows
    ]


async def count(tx: Tx, organization_id: str) -> tuple[int, int]:
    """Return how many entries the organisation has, and how many of them are unsealed."""
    counts = await tx.one_or_none(
        _Counts,
        """
        SELECT (SELECT count(*) FROM audit_entries WHERE organization_id = %(organization_id)s) AS entries,
               (SELECT count(DISTINCT entry_id) FROM audit_unsealed WHERE organization_id = %(organization_id)s)
               AS unsealed
        """,
        {"organization_id": organization_id},
    )
    assert counts is not None, "a count always returns a row"
    return counts.entries, counts.unsealed


async def find_unaccounted(tx: Tx, organization_id: str) -> str | None:
    """Return the oldest entry whose current stage is neither sealed nor noted as unsealed."""
    entry_id: str | None = await tx.value(
        """
        SELECT e.id
          FROM audit_entries e
          LEFT JOIN audit_seals s
                 ON s.organization_id = e.organization_id AND s.entry_id = e.id
                AND s.stage = CASE e.outcome WHEN 'requested' THEN 'requested' ELSE 'final' END
          LEFT JOIN audit_unsealed u
                 ON u.organization_id = e.organization_id AND u.entry_id = e.id
                AND u.stage = CASE e.outcome WHEN 'requested' THEN 'requested' ELSE 'final' END
         WHERE e.organization_id = %(organization_id)s
           AND s.entry_id IS NULL
           AND u.entry_id IS NULL
         ORDER BY e.created_at, e.id
         LIMIT 1
        """,
        {"organization_id": organization_id},
    )
    return entry_id


async def find_tenant(tx: Tx, organization_id: str) -> str | None:
    """Return the organisation's id if the organisation exists."""
    found: str | None = await tx.value(
        "SELECT id FROM organizations WHERE id = %(organization_id)s", {"organization_id": organization_id}
    )
    return found


@dataclass(frozen=True, slots=True)
class _Tenant:
    organization_id: str


@dataclass(frozen=True, slots=True)
class _Counts:
    entries: int
    unsealed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    organization_id: str
    id: str
    project_id: str | None
    action: str
    actor_type: ActorType
    actor_id: str
    outcome: AuditOutcome
    metadata: str
    created_s: str
    finalised_s: str | None
    stage: Stage

    def content(self) -> SealedContent:
        return SealedContent(
            organization_id=self.organization_id,
            id=self.id,
            project_id=self.project_id,
            action=self.action,
            actor_type=self.actor_type,
            actor_id=self.actor_id,
            outcome=self.outcome,
            metadata=self.metadata,
            created_s=self.created_s,
            finalised_s=self.finalised_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _WaitingRow(_Row):
    noted_at: str
    is_sealed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _LinkRow(_Row):
    position: int
    seal: bytes
    chain_position: int | None
    chain_hash: bytes | None
    is_there: bool
