"""What all tests share: one PostgreSQL, one audio component and one Core for each worker, no content for each test."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest
from core_app import Api, FakeClock, Rival, audio_component, core_settings, running_core

from soundmark.embedded.postgres import RunningCluster
from soundmark.embedded.throwaway import throwaway_cluster
from soundmark.kit.migrations import migrate
from soundmark.kit.secret import Secret

# What a running Core needs to find again is put back as it was, not emptied.
_KEPT = {"alembic_version", "signing_keys"}


@pytest.fixture(scope="session")
def cluster() -> Iterator[RunningCluster]:
    with throwaway_cluster() as running:
        yield running


@pytest.fixture(scope="session")
def migrated_url(cluster: RunningCluster) -> Secret:
    url = cluster.create_role_and_database("core_under_test")
    migrate(url, "soundmark.core")
    return url


@pytest.fixture(scope="session")
def spare_migrated_url(cluster: RunningCluster) -> Secret:
    url = cluster.create_role_and_database("core_spare")
    migrate(url, "soundmark.core")
    return url


@pytest.fixture(scope="session")
def audio_url() -> Iterator[str]:
    with audio_component() as url:
        yield url


@pytest.fixture(scope="session")
def session_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="session")
async def session_api(migrated_url: Secret, audio_url: str, session_clock: FakeClock) -> AsyncIterator[Api]:
    """One Core for all tests of a worker: starting it costs more than most tests."""
    async with running_core(core_settings(migrated_url, audio_url=audio_url), session_clock) as client:
        yield client


@pytest.fixture(scope="session")
def session_keys(migrated_url: Secret, session_api: Api) -> list[Any]:
    """The signing keys that the shared Core made when it started."""
    assert session_api is not None, "the keys are there once Core has started"
    with psycopg.connect(migrated_url.reveal()) as connection:
        return connection.execute("SELECT * FROM signing_keys").fetchall()


@pytest.fixture
def database_url(migrated_url: Secret, session_keys: list[Any]) -> Secret:
    """The shared Core's database without any content but its signing keys."""
    with psycopg.connect(migrated_url.reveal(), autocommit=True) as connection:
        _empty(connection, kept=_KEPT)
        if connection.execute("SELECT * FROM signing_keys").fetchall() != session_keys:
            connection.execute("DELETE FROM signing_keys")
            for row in session_keys:
                connection.execute("INSERT INTO signing_keys VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", row)
    return migrated_url


@pytest.fixture
def spare_database_url(spare_migrated_url: Secret) -> Secret:
    """A migrated database of its own without any content, for a test that starts its own Core on its own keys."""
    with psycopg.connect(spare_migrated_url.reveal(), autocommit=True) as connection:
        _empty(connection, kept={"alembic_version"})
    return spare_migrated_url


@pytest.fixture
def clock(session_clock: FakeClock) -> Iterator[FakeClock]:
    yield session_clock
    session_clock.reset()


@pytest.fixture
def rival(database_url: Secret, cluster: RunningCluster) -> Rival:
    assert database_url is not None, "the database is empty"
    return Rival(cluster.superuser_url_of("core_under_test"))


@pytest.fixture
def api(session_api: Api, database_url: Secret, clock: FakeClock) -> Api:
    """Core, as its operator sees it from this machine."""
    assert database_url is not None, "the database is empty"
    return Api(session_api.app, clock)


def _empty(connection: psycopg.Connection[Any], *, kept: set[str]) -> None:
    names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    tables = ", ".join(f'"{name}"' for (name,) in names if name not in kept and not name.startswith("procrast"))
    connection.execute(f"TRUNCATE {tables}".encode())
