"""Connections to the kit's database beside those that are tested."""

import pytest
from support.rival import Rival

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
def rival(kit_url: Secret) -> Rival:
    return Rival(kit_url)


@pytest.fixture
def superuser(cluster: RunningCluster) -> Rival:
    return Rival(cluster.superuser_url)
