"""A database without content, while a component goes on working with it."""

import contextlib
from collections.abc import Iterable
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg
import psycopg.errors
from psycopg import sql

# Deleted rows take room until a VACUUM. Most tests write less than this.
_DELETED_MAX_BYTES: Final = 512 * 1024
_TABLES: Final = """
SELECT relname
  FROM pg_class
 WHERE relnamespace = 'public'::regnamespace
   AND relkind = 'r'
   AND relname <> 'procrastinate_workers'
 ORDER BY relname
"""
_SEQUENCES: Final = """
SELECT sequencename, start_value
  FROM pg_sequences
 WHERE schemaname = 'public'
   AND NOT starts_with(sequencename, 'procrast')
 ORDER BY sequencename
"""
# A function, because PostgreSQL keeps the plans of its statements, and one for each connection, which keeps them. It
# works without foreign keys, so in any order, and returns the tables that need a VACUUM. A running component may be
# writing, and holds some of these rows while it waits for others.
_FUNCTION: Final = """
CREATE OR REPLACE FUNCTION pg_temp.empty_tables() RETURNS text[]
LANGUAGE plpgsql
SET session_replication_role = replica
SET lock_timeout = '100ms'
SET deadlock_timeout = '50ms'
AS $$
DECLARE
    grown text[] := '{{}}';
BEGIN
    {deletes}
    {restarts}
    {then}
    RETURN grown;
END
$$
"""
_DELETE: Final = """
    IF EXISTS (SELECT FROM {table}) THEN
        DELETE FROM {table};
        IF pg_relation_size({name}::regclass) > {deleted_max_bytes} THEN
            grown := array_append(grown, {name});
        END IF;
    END IF;
"""
_RESTART: Final = """
    IF (SELECT is_called FROM {sequence}) THEN
        PERFORM setval({name}::regclass, {start_value}, false);
    END IF;
"""
# The connections that have the function, and for which tables and statements.
_MADE: Final[WeakKeyDictionary[psycopg.Connection[Any], tuple[frozenset[str], str]]] = WeakKeyDictionary()


def empty_tables(connection: psycopg.Connection[Any], *, kept: Iterable[str], then: str = "") -> None:
    """Delete the rows of every table except those of `kept` and the running workers, and restart the sequences.

    `connection` belongs to a superuser and is in autocommit mode; its database gets and loses no table. The statements
    of `then` follow in the same transaction.
    """
    wanted = (frozenset(kept), then)
    if _MADE.get(connection) != wanted:
        _make_function(connection, *wanted)
        _MADE[connection] = wanted
    for name in _call_function(connection):
        connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier(name)))


def _call_function(connection: psycopg.Connection[Any]) -> list[str]:
    for _ in range(50):
        with contextlib.suppress(psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            return [name for (names,) in connection.execute("SELECT pg_temp.empty_tables()") for name in names]
    raise AssertionError("somebody holds a table for ever")


def _make_function(connection: psycopg.Connection[Any], kept: frozenset[str], then: str) -> None:
    tables = [name for (name,) in connection.execute(_TABLES).fetchall() if name not in kept]
    connection.execute(
        sql.SQL(_FUNCTION).format(
            deletes=sql.Composed(
                sql.SQL(_DELETE).format(
                    table=sql.Identifier(name), name=name, deleted_max_bytes=sql.Literal(_DELETED_MAX_BYTES)
                )
                for name in tables
            ),
            restarts=sql.Composed(
                sql.SQL(_RESTART).format(sequence=sql.Identifier(name), name=name, start_value=sql.Literal(start))
                for name, start in connection.execute(_SEQUENCES).fetchall()
            ),
            then=sql.SQL(then),
        )
    )
