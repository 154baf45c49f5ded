"""A database without content, while a component goes on working with it."""

from collections.abc import Iterable
from typing import Any, Final

import psycopg
import psycopg.errors
from psycopg import sql

# Deleted rows take room until a VACUUM. Most tests write less than this.
_DELETED_MAX_BYTES: Final = 512 * 1024

# One round trip. A table without a page was never written, or was vacuumed.
_DELETE: Final = """
DO $$
DECLARE
    name text;
BEGIN
    -- Without foreign keys, so in any order.
    SET LOCAL session_replication_role = replica;
    FOR name IN
        SELECT c.oid::regclass::text
          FROM pg_class AS c
         WHERE c.relnamespace = 'public'::regnamespace
           AND c.relkind = 'r'
           AND NOT starts_with(c.relname, 'procrast')
           AND c.relname <> ALL (ARRAY[{kept}])
           AND pg_relation_size(c.oid) > 0
    LOOP
        EXECUTE 'DELETE FROM ' || name;
    END LOOP;
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
       FROM pg_sequences
      WHERE schemaname = 'public'
        AND NOT starts_with(sequencename, 'procrast')
        AND last_value IS NOT NULL;
END
$$
"""


def empty_tables(connection: psycopg.Connection[Any], *, kept: Iterable[str]) -> None:
    """Delete the rows of every table except those of `kept` and of the queue, and restart the sequences.

    `connection` belongs to a superuser and is in autocommit mode.
    """
    delete = sql.SQL(_DELETE).format(kept=sql.SQL(", ").join(sorted(kept)))
    # A running component may be writing, and holds some of these rows while it waits for others.
    connection.execute("SET lock_timeout = '100ms'; SET deadlock_timeout = '50ms'")
    for attempt in range(50):
        try:
            connection.execute(delete)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            assert attempt < 49, "somebody holds a table for ever"
        else:
            break
    connection.execute("RESET lock_timeout; RESET deadlock_timeout")
    for (name,) in connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        " AND NOT starts_with(relname, 'procrast') AND pg_relation_size(oid) > %s",
        [_DELETED_MAX_BYTES],
    ).fetchall():
        connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier(name)))
