"""One Audience for each worker, which each test finds empty."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from support.audience.client import AudienceApi, audience_settings, running_audience
from support.database.connections import borrow
from support.database.empty_tables import empty_tables
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import migrate

DATABASE = "audience_under_test"
# A running Audience needs to find these again.
_KEPT = {"alembic_version", "instance_secrets", "proof_transition"}


@pytest.fixture(scope="session")
def migrated_audience_url(cluster: RunningCluster) -> Secret:
    """The URL of Audience's database, with its tables."""
    url = cluster.create_role_and_database(DATABASE)
    migrate(url, "soundmark.audience")
    return url


@pytest.fixture(scope="session")
async def session_audience(migrated_audience_url: Secret) -> AsyncIterator[AudienceApi]:
    """One Audience for all tests of a worker."""
    async with running_audience(audience_settings(migrated_audience_url), FakeClock()) as api:
        yield api


@pytest.fixture
async def audience_url(cluster: RunningCluster, migrated_audience_url: Secret, session_audience: AudienceApi) -> Secret:
    """The shared Audience's database without any content."""
    assert session_audience is not None, "its own key is there"
    await asyncio.to_thread(_empty, cluster.superuser_url_of(DATABASE))
    return migrated_audience_url


@pytest.fixture
def audience_clock(session_audience: AudienceApi) -> Iterator[FakeClock]:
    """Audience's clock, at the present again after the test."""
    yield session_audience.clock
    session_audience.clock.reset()


@pytest.fixture
def audience(session_audience: AudienceApi, audience_url: Secret, audience_clock: FakeClock) -> AudienceApi:
    """Audience, as Core sees it."""
    assert audience_url is not None, "the database is empty"
    return AudienceApi(session_audience.app, audience_clock)


@pytest.fixture
def audience_rival(audience_url: Secret, cluster: RunningCluster) -> Rival:
    """A rival in Audience's database."""
    assert audience_url is not None, "the database is empty"
    return Rival(cluster.superuser_url_of(DATABASE))


def _empty(url: Secret) -> None:
    with borrow(url) as connection:
        empty_tables(connection, kept=_KEPT)
