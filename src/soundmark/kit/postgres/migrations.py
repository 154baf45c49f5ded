"""Bringing a database to the current schema: Alembic runs revisions in plain SQL, forward only.

This module loads SQLAlchemy, so only commands that migrate import it; the others use `schema_version`.
"""

import math
import time
from importlib.resources import files
from typing import Any, Final

import psycopg
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from psycopg import sql
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.schema_version import newest_revision
from soundmark.kit.postgres.sessions import POOLER_REFUSAL, blocking_options

PUBLIC: Final = "public"
LOCK_TIMEOUT_S: Final = 60
_LOCK_KEY: Final = 7_310_575_176_801  # Any number; all migrations of a database take the same one.
_LOCK_POLL_S: Final = 0.2


class MigrationFailed(Exception):
    """The database could not be brought to the current schema; the message is the reason, without secrets."""


def migrate(url: Secret, package: str, *, until: str | None = None, schema: str = PUBLIC) -> list[str]:
    """Apply every revision of `package` (such as `soundmark.core`) that the database at `url` lacks.

    Another `schema` than `public` is created if it is missing, and becomes that of the role of `url` in this database,
    for all of its sessions from then on: through poolers too, which refuse or forget a session's own settings. The job
    queue is in a schema beside it, because its tables have triggers, and an engine that distributes schemas refuses
    those.

    Stop after the revision `until`, if given, with which a test gets the schema of an earlier release. Return the
    applied revisions, oldest first. Each is a transaction of its own; an index that it needs may be built before it.
    Two migrations at once are safe: the second waits for the first, for at most `LOCK_TIMEOUT_S`, and finds nothing to
    do.

    Raises: MigrationFailed.
    """
    try:
        with psycopg.connect(url.reveal(), autocommit=True, **blocking_options(url)) as guard:
            _take_turn(guard)
            _require_unicode(guard)
            if schema != PUBLIC:
                _use_schemas(guard, schema, queue_schema(schema))
            return _upgrade(url, package, until, schema)
    except (psycopg.OperationalError, DBAPIError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error  # Alembic's own statements fail otherwise.
        if not isinstance(cause, psycopg.OperationalError):
            raise
        raise MigrationFailed(_describe(cause)) from None
    except CommandError as error:
        raise MigrationFailed(
            f"this release does not know its schema ({error}); if a newer release made it, run that one; if a checkout"
            " from before 0.1.0 did, start with a new database"
        ) from None


def _take_turn(guard: psycopg.Connection[Any]) -> None:
    """Take the lock of all migrations of a database, until `guard` is closed.

    It polls instead of waiting in a statement: CREATE INDEX CONCURRENTLY waits for every statement that began before
    it, and would wait for those that wait for this lock.

    Raises: MigrationFailed.
    """
    for _ in range(math.ceil(LOCK_TIMEOUT_S / _LOCK_POLL_S)):
        if guard.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK_KEY]).fetchone() == (True,):
            return
        time.sleep(_LOCK_POLL_S)
    raise MigrationFailed("another migration of this database is still running")


def queue_schema(schema: str) -> str:
    """Return the schema of the job queue beside another schema than `public`."""
    return f"{schema}_jobs"


def _use_schemas(guard: psycopg.Connection[Any], *schemas: str) -> None:
    """Create the schemas that are missing, and make them the search path of the role in this database.

    Raises: MigrationFailed.
    """
    for schema in schemas:
        if not guard.execute("SELECT FROM pg_namespace WHERE nspname = %s", [schema]).rowcount:
            try:
                guard.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
            except psycopg.errors.InsufficientPrivilege:
                raise MigrationFailed(
                    f"the role may not create the schema {schema}: grant it CREATE on the database"
                ) from None
        if guard.execute("SELECT has_schema_privilege(%s, 'CREATE')", [schema]).fetchone() != (True,):
            raise MigrationFailed(f"the role may not create tables in the schema {schema}: grant it all rights on it")
    guard.execute(
        sql.SQL("ALTER ROLE CURRENT_USER IN DATABASE {} SET search_path TO {}").format(
            sql.Identifier(guard.info.dbname), sql.SQL(", ").join(map(sql.Identifier, schemas))
        )
    )


def _upgrade(url: Secret, package: str, until: str | None, schema: str) -> list[str]:
    applied: list[str] = []

    def note(*, step: Any, **_: Any) -> None:
        applied.append(step.up_revision_id)

    config = Config()
    config.set_main_option("script_location", "soundmark.kit.postgres:alembic")
    config.set_main_option("path_separator", "newline")
    config.set_main_option(
        "version_locations", str(files(package).joinpath("migrations", "versions")).replace("%", "%%")
    )
    # The driver parses the URL, so that every URL that works for a serving process works here too.
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(url.reveal(), **blocking_options(url)),
        poolclass=NullPool,
    )
    with engine.connect() as connection:
        config.attributes.update(connection=connection, on_version_apply=note)
        if schema != PUBLIC:
            config.attributes["schemas"] = (schema, queue_schema(schema))
        command.upgrade(config, until or "head")
    assert not applied or applied[-1] == (until or newest_revision(package)), "a revision is not named like its file"
    return applied


def _require_unicode(connection: psycopg.Connection[Any]) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise MigrationFailed(f"the database is encoded in {encoding} and must be in UTF8 (`createdb --encoding UTF8`)")


def _describe(error: psycopg.OperationalError) -> str:
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return "a table that it changes is in use (a backup, a report?); run it again later"
    if POOLER_REFUSAL in str(error):
        return "the database is behind a connection pooler: give this command a URL without it"
    # A server that answers has a SQLSTATE, such as that of a full disk.
    what = "cannot be reached" if error.sqlstate is None else "failed"
    return f"the database {what}: " + str(error).strip().partition("\n")[0]
