import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.console_links import printed_link
from support.ordinary_user import OrdinaryUser, ordinary_user
from support.up_process import Up, passable_folder, running_up

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
def first_run() -> Iterator[tuple[Path, str]]:
    """The data dir of a run that SIGTERM ended, and the ticket of the sign-in link that it printed."""
    with passable_folder() as path, running_up(path / "data") as up:
        ticket = printed_link(up.until_ready())[2]
        assert up.stop(signal.SIGTERM) == 0
        yield path / "data", ticket


@pytest.fixture(scope="session")
def seeded(first_run: tuple[Path, str]) -> Path:
    """A data dir that has run before; every test that uses it leaves more in it.

    Making a cluster is the slow part of a first start, so the tests of the group `up` share this one, one by one.
    """
    return first_run[0]


@pytest.fixture(scope="session")
def old_ticket(first_run: tuple[Path, str]) -> str:
    """The ticket of a sign-in link that an earlier run in `seeded` printed."""
    return first_run[1]


@pytest.fixture(scope="session")
def up() -> Iterator[Up]:
    """One that runs, on a data dir of its own, for all tests that leave it as they found it; a start takes 4 s of CPU.

    They may leave tenants in it.
    """
    with passable_folder() as path, running_up(path / "data", environ=GIVEN) as running:
        yield running.until_ready()
