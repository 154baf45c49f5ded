from collections.abc import Iterator
from pathlib import Path

import pytest
from ordinary_user import OrdinaryUser, ordinary_user
from up_process import Up, passable_folder, running_up

GIVEN = {"SOUNDMARK_LOG_LEVEL": "warning", "SOUNDMARK_RESOLVE_RATE_LIMIT": "1000"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may pass through."""
    with passable_folder() as path:
        yield path


@pytest.fixture(scope="session")
def ordinary() -> Iterator[OrdinaryUser]:
    with ordinary_user() as user:
        yield user


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    """One that runs for all tests of a module, each of which leaves it as it found it."""
    with passable_folder() as path, running_up(path / "data", environ=GIVEN) as running:
        yield running.until_ready()
