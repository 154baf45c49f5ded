"""A database without content, while a component goes on working with it."""

from typing import Any, Final

import psycopg
import psycopg.errors

# TRUNCATE takes a fifth of a second for all tables of Core, DELETE of a test's few rows a hundredth of that. Deleted
# rows take room until a TRUNCATE.
_DELETED_MAX_BYTES: Final = 512 * 1024


def empty_tables(connection: psycopg.Connection[Any], *, kept: set[str]) -> None:
    """Delete the rows of every table except those of `kept` and of the queue, and restart the sequences.

    `connection` belongs to a superuser and is in autocommit mode.
    """
    names = [name for name in _tables(connection) if name not in kept]
    # A running component may be writing, and holds some of these rows while it waits for others.
    connection.execute("SET lock_timeout = '100ms'; SET deadlock_timeout = '50ms'")
    for attempt in range(50):
        try:
            _delete(connection, names)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            assert attempt < 49, "somebody holds a table for ever"
        else:
            break
    connection.execute("RESET lock_timeout; RESET deadlock_timeout")


def _tables(connection: psycopg.Connection[Any]) -> list[str]:
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
    return [name for (name,) in rows if not name.startswith("procrast")]


def _delete(connection: psycopg.Connection[Any], names: list[str]) -> None:
    """Delete from all tables together, since they refer to each other."""
    listed = ", ".join(f'"{name}"' for name in names)
    deletions = "; ".join(f'DELETE FROM "{name}"' for name in names)
    largest = connection.execute(
        "SELECT max(pg_relation_size(c.oid)) FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace"
        " AND c.relname = ANY(%s)",
        [names],
    ).fetchone()
    assert largest is not None, "there are tables"
    with connection.transaction():
        if largest[0] > _DELETED_MAX_BYTES:
            connection.execute(f"TRUNCATE {listed}".encode())
        else:
            # Without foreign keys, so in any order.
            connection.execute(f"SET LOCAL session_replication_role = replica; {deletions}".encode())
        connection.execute(
            "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)"
            " FROM pg_sequences WHERE schemaname = 'public' AND sequencename NOT LIKE 'procrast%'"
        )
