"""A chain in a database of its own."""

from collections.abc import AsyncIterator

import pytest
from support.database.rival import Rival
from support.tenancy.audit_entries import make_organization, open_chain

from soundmark.core.live.audit_chain import AuditChain
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database


@pytest.fixture
async def db(spare_database_url: Secret) -> AsyncIterator[Database]:
    """An open database with a pool of its own."""
    opened = Database(spare_database_url, pool_size=12, application_name="tests")
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def chain(db: Database) -> AuditChain:
    """The audit chain, opened."""
    return await open_chain(db)


@pytest.fixture
def rival(spare_database_url: Secret, cluster: RunningCluster) -> Rival:
    """A second connection, which alters rows and holds locks."""
    assert spare_database_url is not None, "the database is empty"
    return Rival(cluster.superuser_url_of("core_spare"))


@pytest.fixture
async def organization_id(db: Database) -> str:
    """The id of a new organisation."""
    return await make_organization(db)
