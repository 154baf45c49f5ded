"""What all tests share: one PostgreSQL and one audio component for each worker, one clean database for each test."""

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from core_app import Api, FakeClock, Rival, audio_component, core_settings, running_core

from soundmark.embedded.postgres import RunningCluster
from soundmark.embedded.throwaway import throwaway_cluster
from soundmark.kit.migrations import migrate
from soundmark.kit.secret import Secret

_KEPT = {"alembic_version"}


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
def audio_url() -> Iterator[str]:
    with audio_component() as url:
        yield url


@pytest.fixture
def database_url(migrated_url: Secret) -> Secret:
    """Core's database, migrated and without any content."""
    with psycopg.connect(migrated_url.reveal(), autocommit=True) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        tables = ", ".join(f'"{name}"' for (name,) in names if name not in _KEPT and not name.startswith("procrast"))
        connection.execute(f"TRUNCATE {tables}".encode())
    return migrated_url


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def rival(database_url: Secret) -> Rival:
    return Rival(database_url)


@pytest.fixture
async def api(database_url: Secret, audio_url: str, clock: FakeClock) -> AsyncIterator[Api]:
    """Core, as its operator sees it from this machine."""
    async with running_core(core_settings(database_url, audio_url=audio_url), clock) as client:
        yield client
