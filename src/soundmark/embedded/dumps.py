"""Dumps of PostgreSQL databases: a snapshot of one database into a file, and back into an empty database.

PostgreSQL's own `pg_dump` and `pg_restore` do the work. This module finds them, keeps passwords off their command
lines, and checks the contents of a database.
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from soundmark.embedded.installation import NoPostgres, find_programs
from soundmark.kit.crypto.secret import Secret

_APPLICATION: Final = "soundmark-backup"
_CONNECT_TIMEOUT_S: Final = 5
# Core's policies show every row to a session with the first setting (`is_backup`); other databases ignore it. A role
# may have time limits, as the guide wants behind a pooler, but a snapshot is idle for as long as the dump takes.
_READS_EVERYTHING: Final = "-c soundmark.backup=on -c statement_timeout=0 -c idle_in_transaction_session_timeout=0"
# PostgreSQL's own workers (autovacuum) belong to no user, and step aside.
_OTHER_CLIENTS: Final = """
    SELECT count(*)
      FROM pg_stat_activity
     WHERE datname = current_database()
       AND pid <> pg_backend_pid()
       AND usesysid IS NOT NULL
"""
_POLL_S: Final = 0.1
_LEAVES_WITHIN_POLLS: Final = 20
_MARKER: Final = "soundmark_restore_under_way"
# The objects of a schema: the keyword for `DROP`, and the quoted name. Sequences and indexes go with their tables.
_TABLES: Final = """
    SELECT 'TABLE', c.oid::regclass::text
      FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace
       AND c.relkind IN ('r', 'p')
"""
_ROUTINES: Final = """
    SELECT 'ROUTINE', p.oid::regprocedure::text
      FROM pg_proc p
     WHERE p.pronamespace = 'public'::regnamespace
"""
_TYPES: Final = """
    SELECT 'TYPE', t.oid::regtype::text
      FROM pg_type t
     WHERE t.typnamespace = 'public'::regnamespace
       AND (t.typtype IN ('e', 'd')
            OR (t.typtype = 'c' AND EXISTS (SELECT FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c')))
"""

_running: Final = set[subprocess.Popen[bytes]]()


class DumpFailed(Exception):
    """A database could not be dumped, checked or filled; the message is one line for the operator, without secrets."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one database at one moment; it lasts as long as the transaction that exported it."""

    url: Secret
    id: str
    connection: psycopg.Connection[Any]

    def rows(self) -> dict[str, int]:
        """Return how many rows each table holds at this moment."""
        return _count_rows(self.connection)

    def values(self, statement: LiteralString) -> list[Any]:
        """Return the one row of `statement` at this moment."""
        row = self.connection.execute(statement).fetchone()
        return list(row or ())


@contextlib.contextmanager
def open_snapshot(url: Secret) -> Iterator[Snapshot]:
    """Open a snapshot of the database for `dump`; it blocks no writer.

    Raises: DumpFailed.
    """
    with _connect(url) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        row = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None, "a function call returns one row"
        yield Snapshot(url, row[0], connection)


def read_now(url: Secret, statement: LiteralString) -> list[Any]:
    """Return the one row of `statement` now; it sees every row of every tenant.

    Raises: DumpFailed.
    """
    with _connect(url) as connection:
        return list(connection.execute(statement).fetchone() or ())


def dump(snapshot: Snapshot, file: Path) -> None:
    """Create `file` with everything in the database at the moment of `snapshot`.

    Raises: DumpFailed.
    """
    # The policies show every row to a backup (`_READS_EVERYTHING`), but pg_dump obeys policies only with this option.
    options = ["--format=custom", "--enable-row-security", "--no-owner", "--no-privileges"]
    _run("pg_dump", [*options, f"--snapshot={snapshot.id}", f"--file={file}"], snapshot.url)


def end_dumps() -> None:
    """End the dumps that run in other threads, which fail then."""
    for process in list(_running):
        process.kill()


def restore(file: Path, url: Secret) -> None:
    """Fill an empty database from a dump: all of it, or nothing.

    Raises: DumpFailed.
    """
    options = ["--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction"]
    _run("pg_restore", [*options, str(file)], url)


def require_unused(url: Secret) -> None:
    """Refuse a database to which a client is connected, and stays connected for two seconds.

    Raises: DumpFailed.
    """
    with _connect(url) as connection:
        polls_count = 0
        while (row := connection.execute(_OTHER_CLIENTS).fetchone()) is not None and row[0]:
            if polls_count == _LEAVES_WITHIN_POLLS:
                raise DumpFailed(f"{_name(url)} is in use ({row[0]} other connections): stop everything that uses it")
            polls_count += 1
            time.sleep(_POLL_S)


def count_rows(url: Secret) -> dict[str, int]:
    """Return how many rows each table holds.

    Raises: DumpFailed.
    """
    with _connect(url) as connection:
        return _count_rows(connection)


def is_half_restored(url: Secret) -> bool:
    """Return whether a restore of this database was interrupted.

    Raises: DumpFailed.
    """
    with _connect(url) as connection:
        row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [_MARKER]).fetchone()
        return bool(row and row[0])


def empty(url: Secret) -> None:
    """Remove everything from a database, which must hold nothing worth keeping, and mark it as being restored.

    Raises: DumpFailed.
    """
    with _connect(url) as connection, connection.transaction():
        # Object by object, because the schema belongs to the server, and the grants on it must stay.
        for listing in (_TABLES, _ROUTINES, _TYPES):
            for kind, name in connection.execute(listing).fetchall():
                connection.execute(sql.SQL("DROP {} IF EXISTS {} CASCADE").format(sql.SQL(kind), sql.SQL(name)))
        connection.execute(sql.SQL("CREATE TABLE {} ()").format(sql.Identifier(_MARKER)))


def change(url: Secret, statement: LiteralString) -> None:
    """Run a statement that returns nothing.

    Raises: DumpFailed.
    """
    with _connect(url) as connection:
        connection.execute(statement)


def finish(urls: Sequence[Secret]) -> None:
    """Collect statistics, without which each plan is a guess, and remove the mark that `empty` set.

    Raises: DumpFailed.
    """
    for url in urls:
        with _connect(url) as connection:
            connection.execute("ANALYZE")
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(_MARKER)))


def require_programs(folder: Path | None) -> Path:
    """Return the folder of `pg_dump` and `pg_restore`: the given one, the wheel's, or the one on the search path.

    Raises: DumpFailed.
    """
    if folder is not None:
        found: Path | None = folder.absolute()
    else:
        on_path = shutil.which("pg_dump")
        try:
            found = find_programs(None)
        except (NoPostgres, ImportError):
            found = Path(on_path).parent if on_path else None
    if found is None or not all((found / name).exists() for name in ("pg_dump", "pg_restore")):
        raise DumpFailed("pg_dump and pg_restore are missing: install PostgreSQL's client programs")
    return found


def _run(program: str, options: Sequence[str], url: Secret) -> None:
    parts = conninfo_to_dict(url.reveal())
    password = parts.pop("password", None)
    target = make_conninfo("", **{**parts, "options": _READS_EVERYTHING, "connect_timeout": _CONNECT_TIMEOUT_S})
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "SOUNDMARK_"))}
    with subprocess.Popen(  # noqa: S603 - our own command line
        [str(_folder() / program), "--no-password", f"--dbname={target}", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # Everybody on the machine can read a command line, but not an environment.
        env={**environ, "LC_ALL": "C", **({"PGPASSWORD": str(password)} if password is not None else {})},
    ) as process:
        _running.add(process)
        try:
            _, errors = process.communicate()
        except BaseException:
            process.kill()
            raise
        finally:
            _running.discard(process)
    if process.returncode:
        first = next(iter(errors.decode(errors="replace").strip().splitlines()), "no reason given")
        raise DumpFailed(f"{program} failed on {_name(url)}: {first}")


def _folder() -> Path:
    chosen = os.environ.get("SOUNDMARK_POSTGRES_BIN")
    return require_programs(Path(chosen) if chosen else None)


@contextlib.contextmanager
def _connect(url: Secret) -> Iterator[psycopg.Connection[Any]]:
    try:
        with psycopg.connect(
            url.reveal(),
            autocommit=True,
            connect_timeout=_CONNECT_TIMEOUT_S,
            application_name=_APPLICATION,
            options=_READS_EVERYTHING,
        ) as connection:
            yield connection
    except psycopg.Error as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise DumpFailed(f"{_name(url)}: {reason}") from None


def _count_rows(connection: psycopg.Connection[Any]) -> dict[str, int]:
    names = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> %s ORDER BY tablename", [_MARKER]
    ).fetchall()
    counts = {}
    for (name,) in names:
        row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(name))).fetchone()
        counts[name] = row[0] if row is not None else 0
    return counts


def _name(url: Secret) -> str:
    parts: Mapping[str, Any] = conninfo_to_dict(url.reveal())
    return f"the database {parts.get('dbname')}"
