"""Connections to the kit's database, beside the one of `db`."""

from collections.abc import AsyncIterator

import pytest
from support.database.rival import Rival

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.pipelined import PipelinedTransactions


@pytest.fixture
def kit_rival(kit_url: Secret) -> Rival:
    """A rival in the kit's database."""
    return Rival(kit_url)


@pytest.fixture
def superuser(cluster: RunningCluster) -> Rival:
    """A connection of the superuser."""
    return Rival(cluster.superuser_url)


@pytest.fixture
async def transactions(db: Database) -> AsyncIterator[PipelinedTransactions]:
    """Transactions on at most two connections."""
    made = PipelinedTransactions(db, size=2)
    yield made
    await made.aclose()
