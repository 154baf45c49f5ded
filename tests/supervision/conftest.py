import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from support.processes.ordinary_user import OrdinaryUser, ordinary_user
from support.processes.up_process import READY_S, Up, has_ended, passable_folder, running_up, until

GIVEN = {"SOUNDMARK_LOG_LEVEL": "warning", "SOUNDMARK_RESOLVE_RATE_LIMIT": "1000"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may pass through."""
    with passable_folder() as path:
        yield path


@pytest.fixture(scope="session")
def ordinary() -> Iterator[OrdinaryUser]:
    """An ordinary user with a copy of the command."""
    with ordinary_user() as user:
        yield user


@dataclass(frozen=True)
class FirstRun:
    """What was seen of a first `up --demo`, which Ctrl-C has ended."""

    data_dir: Path
    printed: str
    answering: Sequence[str]
    status: int
    left: Sequence[psutil.Process]


@pytest.fixture(scope="session")
def first_run() -> Iterator[FirstRun]:
    """The first run on a new data dir, with all that a newcomer sees."""
    with passable_folder() as path:
        with running_up(path / "data", arguments=("--port", "0", "--demo", "--workers", "2")) as up:
            up.until_ready()
            until(lambda: "The verified intent equals the issued one." in up.printed, READY_S)
            answering = [component for component in ("base", "audience", "audio", "console") if up.answers(component)]
            everything = up.everything()
            status = up.stop(signal.SIGINT)
            left = [process for process in everything if not has_ended(process)]
            seen = FirstRun(up.data_dir, up.printed, answering, status, left)
        yield seen


@pytest.fixture(scope="session")
def seeded(first_run: FirstRun) -> Path:
    """A data dir that has run before; every test that uses it leaves more in it.

    Making a cluster is the slow part of a first start, so the tests of the group `up` share this one, one by one.
    """
    return first_run.data_dir


@pytest.fixture(scope="session")
def up() -> Iterator[Up]:
    """One that runs, on a data dir of its own, for all tests that leave it as they found it; a start takes 4 s of CPU.

    They may leave tenants in it.
    """
    with passable_folder() as path, running_up(path / "data", environ=GIVEN) as running:
        yield running.until_ready()


@pytest.fixture(scope="session")
def with_sandbox() -> Iterator[Up]:
    """A running `make up UP='--sandbox'`, for the tests of the sandbox and of the guides.

    It runs until the session ends, so its data dir is its own.
    """
    arguments = ("--port", "0", "--demo", "--sandbox")
    with passable_folder() as path, running_up(path / "data", arguments=arguments) as running:
        running.until_ready()
        until(lambda: "The verified intent equals the issued one." in running.printed, READY_S)
        yield running
