"""Processes that are restarted one after the other under load, also by those of another release: no request fails.

The upgrade compiles a second copy of everything, so before the first release, only `make test-faults` tries it.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
import structlog
from support.failover.ledger import Ledger
from support.failover.member import Member, Starting, balanced, roll
from support.failover.release_before import find_tag_before, install_release_before
from support.failover.route import Route
from support.failover.tenant import make_ledger, verify_audit_log, verify_contract
from support.processes.command_server import ForkedCommand, run_command, running_command_server, share_command_server
from support.processes.killable import running_audience, running_core, running_worker
from support.processes.up_process import clean_environ

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret

DRAIN_S: Final = "3"
REQUESTS_MIN: Final = 300
# What succeeded. A Code that was revoked is 404.
SUCCESSES: Final = {"GET 200", "GET 404", "POST 200", "POST 201", "PUT 200"}
ROOTS: Final = ("soundmark.cli", "soundmark.core.app", "soundmark.core.worker", "soundmark.audience.app")

_log: Final = structlog.get_logger()

pytestmark = [pytest.mark.xdist_group("failover"), pytest.mark.timeout(480)]


@dataclass(frozen=True)
class Databases:
    core: Secret
    audience: Secret

    @property
    def names(self) -> tuple[str, str]:
        """Their names, in the same order."""
        return urlsplit(self.core.reveal()).path[1:], urlsplit(self.audience.reveal()).path[1:]

    def migrate(self, server: Path) -> None:
        """Migrate both with the release that the server forks."""
        for component, url in (("core", self.core), ("audience", self.audience)):
            environ = clean_environ({f"SOUNDMARK_{component.upper()}_DATABASE_URL": url.reveal()})
            status, _, errors = run_command(server, ["migrate", component], environ, timeout_s=60)
            assert status == 0, errors


@dataclass(frozen=True)
class Release:
    """How processes of one release start."""

    server: Path
    databases: Databases
    audience_url: str = ""

    def audience(self) -> contextlib.AbstractContextManager[tuple[str, ForkedCommand]]:
        return running_audience(self.databases.audience, server=self.server, drain_s=DRAIN_S)

    def core(self) -> contextlib.AbstractContextManager[tuple[str, ForkedCommand]]:
        limits = {"drain_s": DRAIN_S, "resolve_rate_limit": "1000000"}
        return running_core(self.databases.core, self.audience_url, server=self.server, **limits)

    @contextlib.contextmanager
    def worker(self) -> Iterator[tuple[str, ForkedCommand]]:
        with running_worker(self.databases.core, self.audience_url, server=self.server) as process:
            yield "", process


@contextlib.asynccontextmanager
async def running_fleet(starting: Starting) -> AsyncIterator[tuple[str, list[Member]]]:
    """Run two processes, and a way that leads to those that are ready; yield its URL and the processes."""
    async with contextlib.AsyncExitStack() as stack:
        members = [Member(starting) for _ in range(2)]
        for member in members:
            stack.callback(member.stop)
            await asyncio.to_thread(member.start)
        route = await stack.enter_async_context(Route(*(member.port for member in members)))
        await stack.enter_async_context(balanced(route, members))
        yield route.url, members


@pytest.fixture(params=["restart", "upgrade"] if "FAULTS_S" in os.environ or find_tag_before() else ["restart"])
def server_before(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """What forks the processes that are replaced: those of this release, or of the one before, from its wheels."""
    if request.param == "restart":
        yield share_command_server()
        return
    installed = install_release_before(tmp_path)
    with running_command_server(ROOTS, python_path=installed) as server:
        script = tmp_path / "where.py"
        script.write_text("import soundmark; print(soundmark.__file__)\n")
        _, printed, _ = run_command(server, [], clean_environ({}), timeout_s=60, script=script)
        assert Path(printed.strip()).is_relative_to(installed)
        yield server


@pytest.fixture
def databases(cluster: RunningCluster, server_before: Path) -> Databases:
    """Empty databases as the processes that are replaced know them."""
    names = (f"rolling_{component}_{server_before.parent.name[-8:].lower()}" for component in ("core", "audience"))
    databases = Databases(*(cluster.create_role_and_database(name) for name in names))
    databases.migrate(server_before)
    return databases


async def test_no_request_fails_while_processes_are_replaced_one_by_one(
    cluster: RunningCluster, databases: Databases, server_before: Path
) -> None:
    """In the order of docs/operating/upgrading.md: the schema, Audience, Core, the worker."""
    server = share_command_server()
    async with contextlib.AsyncExitStack() as stack:
        audience_url, audiences = await stack.enter_async_context(
            running_fleet(Release(server_before, databases).audience)
        )
        before, after = (Release(each, databases, audience_url) for each in (server_before, server))
        core_url, cores = await stack.enter_async_context(running_fleet(before.core))
        worker = Member(before.worker)
        stack.callback(worker.stop)
        await asyncio.to_thread(worker.start)
        superuser_urls = [cluster.superuser_url_of(name) for name in databases.names]
        ledger = await make_ledger(core_url, superuser_urls[0], seed=1)
        ledger.timeout_s = 30
        async with under_load(ledger):
            await asyncio.to_thread(databases.migrate, server)
            await roll(audiences, after.audience)
            await roll(cores, after.core)
            await roll([worker], after.worker)
        await ledger.check_everything()
        assert ledger.contradictions == []
        await verify_audit_log(ledger, core_url)
        await verify_contract(ledger, superuser_urls[1])


@contextlib.asynccontextmanager
async def under_load(ledger: Ledger) -> AsyncIterator[None]:
    """Send requests during the block and a while before and after; every one of them must succeed."""
    stopping = asyncio.Event()
    load = asyncio.create_task(ledger.run(stopping))
    try:
        await ledger.until_working()
        yield
        await ledger.until_working()
        await ledger.until_measuring()
    finally:
        stopping.set()
        await load
    _log.info("answers", **ledger.counts)
    assert set(ledger.counts) <= SUCCESSES, ledger.counts
    assert ledger.counts.total() >= REQUESTS_MIN
