"""The table `broadcasts`: the signed record of each token."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from soundmark.kit.postgres.arrays import plain_array, text_array
from soundmark.kit.postgres.database_server import DatabaseServer, parse_server
from soundmark.kit.postgres.link import Call
from soundmark.kit.postgres.shared_connection import SharedConnection
from soundmark.kit.postgres.transaction import AnyTx, Tx


class Broadcast(NamedTuple):
    """A token and its signed record."""

    token: str
    payload: bytes
    signature: bytes


async def find_live(connection: SharedConnection, tokens: Iterable[str]) -> tuple[dict[str, Broadcast], DatabaseServer]:
    """Return the broadcasts of those tokens that resolve, by token, and the server that has them.

    Those do not resolve that are revoked, and those of a suspended organisation.

    The preface of `connection` describes the server.

    Every resolution runs this statement, whatever its token: a revoked Code takes the same path as one that never
    existed, so no response time tells them apart. Only `core/hot` runs it. Any division of the tokens gives the same
    rows, so several databases may each be asked for their own part, if each has the suspended organisations.
    """
    statement: Final = """
        SELECT token, payload, signature
          FROM broadcasts
         WHERE token = ANY($1::text[])
           AND revoked_at IS NULL
           AND NOT EXISTS (
               SELECT
                 FROM suspended_organizations
                WHERE suspended_organizations.organization_id = broadcasts.organization_id
           )
        """
    preface, (rows,) = await connection.run_prefaced(Call(statement, (plain_array(tokens),)), is_repeatable=True)
    return {row[0]: Broadcast._make(row) for row in rows}, parse_server(preface)


async def find_many(tx: AnyTx, tokens: Sequence[str]) -> dict[str, Broadcast]:
    """Return the broadcasts of those tokens that exist, revoked or not, by token."""
    rows = await tx.rows(
        """
        SELECT token, payload, signature
          FROM broadcasts
         WHERE token = ANY(%(tokens)s::text[])
        """,
        {"tokens": text_array(tokens)},  # Quoted: they come from another table, which somebody may have altered.
    )
    return {row[0]: Broadcast._make(row) for row in rows}


async def update_revoked(tx: Tx, *, tokens: Sequence[str], now: datetime) -> None:
    """Make the tokens of locked Codes unresolvable from the commit on, and log it. Lock order: docs/locks.md."""
    await tx.run(
        """
        WITH silenced AS (
            UPDATE broadcasts
               SET revoked_at = %(now)s
             WHERE token = ANY(%(tokens)s::text[])
               AND revoked_at IS NULL
            RETURNING commit_revoked(payload, signature) AS commitment
        )
        INSERT INTO log_queue (kind, count, content)
        SELECT 'code.revoked', count(*), string_agg(commitment, '')
          FROM silenced
        HAVING count(*) > 0
        """,
        {"tokens": list(tokens), "now": now},
    )


async def list_unrevoked(tx: Tx, *, at: datetime, after: str, limit: int) -> list[Broadcast]:
    """Return up to `limit` broadcasts of all organisations that were not revoked at `at`, after a token, by token."""
    rows = await tx.rows(
        """
        SELECT token, payload, signature
          FROM broadcasts
         WHERE token > %(after)s
           AND (revoked_at IS NULL OR revoked_at > %(at)s)
         ORDER BY token
         LIMIT %(limit)s
        """,
        {"at": at, "after": after, "limit": limit},
    )
    return [Broadcast._make(row) for row in rows]
