"""The PostgreSQL of a mutation run, started and migrated once instead of once for each mutant."""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import psycopg
from psycopg import sql

from soundmark.embedded import throwaway
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres import migrations

# Before the name of a database: its copy, migrated and still empty.
_MIGRATED: Final = "migrated_"
_migrate: Final = migrations.migrate


class _SharedCluster(RunningCluster):
    """A running cluster that each process of a mutation run finds without databases, one process at a time."""

    @contextlib.contextmanager
    def lend(self, **_: Any) -> Iterator[RunningCluster]:
        """Yield the cluster in place of a new one; a killed process may have left its databases."""
        with self._connect() as connection:
            names = connection.execute("SELECT datname FROM pg_database WHERE NOT datistemplate").fetchall()
            for (name,) in names:
                if name != "postgres" and not name.startswith(_MIGRATED):
                    connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        yield self

    def create_role_and_database(self, name: str) -> Secret:
        """Create a database, as a copy of the migrated one if that exists."""
        with self._connect() as connection:
            if _exists(connection, _MIGRATED + name) and not _exists(connection, name):
                _copy(connection, _MIGRATED + name, name, owner=name)
        return RunningCluster.create_role_and_database(self, name)

    def migrate(self, url: Secret, package: str, *, until: str | None = None, schema: str = "public") -> list[str]:
        """Migrate a database, and keep a copy for the processes that come later."""
        applied = _migrate(url, package, until=until, schema=schema)
        name = url.reveal().rpartition("/")[2]
        with self._connect() as connection:
            if until is None and not _exists(connection, _MIGRATED + name):
                _copy(connection, name, _MIGRATED + name, owner=name)
        return applied

    def _connect(self) -> contextlib.closing[psycopg.Connection[Any]]:
        return contextlib.closing(psycopg.connect(self.superuser_url.reveal(), autocommit=True))


@contextlib.contextmanager
def shared_cluster() -> Iterator[None]:
    """Let all processes that are forked meanwhile use one cluster, one after the other."""
    with throwaway.throwaway_cluster() as running:
        shared = _SharedCluster(running.cluster, running.port, running.process)
        throwaway.throwaway_cluster = shared.lend
        migrations.migrate = shared.migrate
        yield


def _exists(connection: psycopg.Connection[Any], name: str) -> bool:
    return connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).rowcount > 0


def _copy(connection: psycopg.Connection[Any], source: str, name: str, *, owner: str) -> None:
    connection.execute(
        sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(*map(sql.Identifier, (name, owner, source)))
    )
