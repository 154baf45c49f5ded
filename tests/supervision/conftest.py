import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.ordinary_user import OrdinaryUser, ordinary_user
from support.up_process import Up, passable_folder, running_up, write_note

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


@pytest.fixture(scope="session")
def seeded() -> Iterator[Path]:
    """A data dir that holds something, from a run that SIGTERM ended; every test that uses it leaves more in it.

    Making a cluster is the slow part of a first start, so the tests of the group `up` share this one, one by one.
    """
    with passable_folder() as path, running_up(path / "data") as up:
        write_note(up.until_ready(), "from the first run")
        assert up.stop(signal.SIGTERM) == 0
        yield path / "data"


@pytest.fixture(scope="session")
def up() -> Iterator[Up]:
    """One that runs, on a data dir of its own, for all tests that leave it as they found it; a start takes 4 s of CPU.

    They may leave tenants in it.
    """
    with passable_folder() as path, running_up(path / "data", environ=GIVEN) as running:
        yield running.until_ready()
