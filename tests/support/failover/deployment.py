"""Two PostgreSQL servers and the processes on them, with ways between them that a test leads elsewhere and cuts."""

import asyncio
import contextlib
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import migrate
from support.database.rival import Rival
from support.failover.ledger import Ledger
from support.failover.member import Member
from support.failover.postgres_pair import PostgresPair, running_pair, url_at
from support.failover.route import Route
from support.failover.tenant import make_ledger
from support.processes.command_server import ForkedCommand
from support.processes.killable import running_audience, running_core, running_worker

_PRIVATE_TIMEOUT_S = "3"


@dataclass
class Deployment:
    """What the faults happen to."""

    pair: PostgresPair
    routes: list[Route]  # To the primary: of the first Core, and of everything else.
    audience_route: Route
    audience: Member
    cores: list[Member]
    worker: Member
    worker_log: Path
    ledger: Ledger
    back_after_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    async def switch(self, *routes: Route) -> None:
        """Lead these ways, or all of them, to the primary."""
        for route in routes or self.routes:
            await route.switch(self.pair.primary.port)

    async def note_return(self, fault: str) -> None:
        """Note after how many seconds the clients' writes and resolutions succeed again."""
        self.back_after_s[fault].append(await self.ledger.until_working())

    async def fail_over(self, fault: str) -> None:
        """Promote the standby, lead to it, and note when the clients' requests succeed again."""
        await asyncio.to_thread(self.pair.fail_over)
        await self.switch()
        await self.note_return(fault)

    async def rejoin(self) -> None:
        """Kill the old primary, if it lives, and make it the standby of the new one."""
        await asyncio.to_thread(self.pair.standby.kill)
        await asyncio.to_thread(self.pair.rejoin)

    async def restart_core(self) -> None:
        """Kill the first Core and start it again, at another address."""
        await asyncio.to_thread(self.cores[0].restart_after_kill)
        self.ledger.urls = [core.url for core in self.cores]

    async def restart_audience(self) -> None:
        """Kill Audience and start it again."""
        await asyncio.to_thread(self.audience.restart_after_kill)
        await self.audience_route.switch(self.audience.port)

    async def restart_worker(self) -> None:
        """Kill the worker and start it again; return once it works. One that starts without a database ends."""
        newest = "SELECT coalesce(max(id), 0) FROM procrastinate_workers"
        ((before,),) = await self._rival.rows(newest)
        await asyncio.to_thread(self.worker.restart_after_kill)
        await self._rival.until_found(f"SELECT FROM ({newest}) AS newest(id) WHERE id > %s", before)

    async def describe_jobs(self) -> str:
        """Return what the queue holds, which workers there are, and the end of the worker's log."""
        jobs = "SELECT task_name, status, attempts, worker_id FROM procrastinate_jobs WHERE status <> 'succeeded'"
        workers = "SELECT id, now() - last_heartbeat FROM procrastinate_workers"
        rows = [*await self._rival.rows(jobs), *await self._rival.rows(workers)]
        return f"{rows}\n{self.worker_log.read_text()[-4000:]}"

    @property
    def _rival(self) -> Rival:
        return Rival(self.pair.primary.running.superuser_url_of("soundmark_core"))

    def assert_alive(self) -> None:
        """Fail if a process has ended by itself."""
        for member in (*self.cores, self.audience):
            assert member.process.poll() is None, f"a process ended: {member.url}"
        assert self.worker.process.poll() is None, f"the worker ended: {self.worker_log.read_text()[-2000:]}"


@contextlib.asynccontextmanager
async def running_deployment(seed: int) -> AsyncIterator[Deployment]:
    """Run two servers of PostgreSQL, two Cores, a worker and Audience, with a tenant that may issue a million Codes."""
    async with contextlib.AsyncExitStack() as stack:
        pair = stack.enter_context(running_pair())
        urls = {name: pair.create_database(f"soundmark_{name}") for name in ("core", "audience")}
        for name, url in urls.items():
            await asyncio.to_thread(migrate, url, f"soundmark.{name}")
        routes = [await stack.enter_async_context(Route(pair.primary.port)) for _ in range(2)]
        audience = Member(lambda: running_audience(url_at(urls["audience"], routes[1].port)))
        stack.callback(audience.stop)
        await asyncio.to_thread(audience.start)
        audience_route = await stack.enter_async_context(Route(audience.port))
        cores = [_core(url_at(urls["core"], route.port), audience_route.url) for route in routes]
        log = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "worker.log"
        worker = Member(lambda: _worker(url_at(urls["core"], routes[1].port), audience_route.url, log))
        for member in (*cores, worker):
            stack.callback(member.stop)
            await asyncio.to_thread(member.start)
        ledger = await make_ledger(cores[0].url, pair.primary.running.superuser_url_of("soundmark_core"), seed=seed)
        ledger.urls = [core.url for core in cores]
        yield Deployment(pair, routes, audience_route, audience, cores, worker, log, ledger)


def _core(database_url: Secret, audience_url: str) -> Member:
    limits = {"resolve_rate_limit": "1000000", "private_timeout_s": _PRIVATE_TIMEOUT_S}
    return Member(lambda: running_core(database_url, audience_url, **limits))


@contextlib.contextmanager
def _worker(database_url: Secret, audience_url: str, log: Path) -> Iterator[tuple[str, ForkedCommand]]:
    with running_worker(database_url, audience_url, log=str(log)) as process:
        yield "", process
