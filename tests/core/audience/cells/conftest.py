"""A Core that measures in two cells."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.api.core_settings import core_settings
from support.audience.cells import CellsFile, Divided
from support.audience.client import audience_settings
from support.database.connections import borrow
from support.database.empty_tables import empty_tables
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker, running_core, served_in_thread

from soundmark.audience.app import create_app
from soundmark.core.context import Context
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import migrate

_EAST = "audience_east"


@pytest.fixture(scope="session")
def session_east_url(cluster: RunningCluster) -> Secret:
    """The database of the second cell."""
    url = cluster.create_role_and_database(_EAST)
    migrate(url, "soundmark.audience")
    return url


@pytest.fixture(scope="session")
def east_url(session_east_url: Secret, session_clock: FakeClock) -> Iterator[str]:
    """The URL of the second cell's Audience."""
    with served_in_thread(create_app(audience_settings(session_east_url), clock=session_clock)) as url:
        yield url


@pytest.fixture
async def east(cluster: RunningCluster, east_url: str) -> Rival:
    """A rival in the database of the second cell, which is empty."""
    assert east_url.startswith("http"), "it is migrated and served"

    def empty() -> None:
        with borrow(cluster.superuser_url_of(_EAST)) as connection:
            empty_tables(connection, kept={"alembic_version", "proof_transition"})

    await asyncio.to_thread(empty)
    return Rival(cluster.superuser_url_of(_EAST))


@pytest.fixture
def cells_file(tmp_path: Path, measuring_url: str, east_url: str, clock: FakeClock) -> CellsFile:
    """The file of both cells."""
    return CellsFile(tmp_path / "cells.json", {"main": measuring_url, "east": east_url}, clock)


@pytest.fixture
def settings(cells_file: CellsFile, audio_url: str) -> dict[str, Any]:
    """The settings of a Core with both cells."""
    no_other = {"audience_url": None, "audience_credential": None}
    return {"audio_url": audio_url, "audience_cells_file": str(cells_file.path), **no_other}


@pytest.fixture
async def divided(
    database_url: Secret,
    settings: dict[str, Any],
    cells_file: CellsFile,
    measuring: Rival,
    east: Rival,
    clock: FakeClock,
) -> AsyncIterator[Divided]:
    """A Core with both cells."""
    async with running_core(core_settings(database_url, **settings), clock) as api:
        yield Divided(api, cells_file, {"main": measuring, "east": east})


@pytest.fixture
async def work(database_url: Secret, cells_file: CellsFile, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of a worker with both cells."""
    given = {"AUDIENCE_URL": "", "AUDIENCE_CREDENTIAL": "", "AUDIENCE_CELLS_FILE": str(cells_file.path)}
    async with make_worker(database_url, clock, **given) as ctx:
        yield ctx
