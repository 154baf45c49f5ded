"""Further connections to the kit's database, beside the one under test."""

import pytest
from support.database.rival import Rival

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
def kit_rival(kit_url: Secret) -> Rival:
    """A rival in the kit's database."""
    return Rival(kit_url)


@pytest.fixture
def superuser(cluster: RunningCluster) -> Rival:
    """A connection of the superuser."""
    return Rival(cluster.superuser_url)
