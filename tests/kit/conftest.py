"""An empty database for the kit's own tests."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database


@pytest.fixture(scope="session")
def kit_url(cluster: RunningCluster) -> Secret:
    """The URL of a database with one table of notes."""
    url = cluster.create_role_and_database("kit_under_test")
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        connection.execute("CREATE TABLE notes (text text PRIMARY KEY)")
    return url


@pytest.fixture
async def db(kit_url: Secret) -> AsyncIterator[Database]:
    """A database with one empty table, `notes`."""
    with psycopg.connect(kit_url.reveal(), autocommit=True) as connection:
        connection.execute("TRUNCATE notes")
    database = Database(kit_url, pool_size=3, application_name="kit-test")
    await database.open()
    yield database
    await database.close()
