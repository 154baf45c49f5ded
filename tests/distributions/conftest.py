"""The built distributions, built once for all tests."""

from pathlib import Path

import pytest

from .archives import FOLDERS, build


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archives of every distribution."""
    target = tmp_path_factory.mktemp("dist")
    for folder in FOLDERS.values():
        build(folder, target)
    return target
