"""Servers and processes that die, pause and are cut off under load: nothing that was acknowledged is lost.

Two PostgreSQL servers, two Cores with a way to the primary each, Core's worker and Audience. The test itself stands in
for failover software. `FAULTS_S` seconds of faults, by default few; `make test-faults` has ten minutes.
"""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import httpx2
import pytest
import structlog
from support.failover.ledger import Ledger, Measured
from support.failover.postgres_pair import PostgresPair, running_pair, url_at
from support.failover.route import Route
from support.processes.command_server import ForkedCommand
from support.processes.killable import OPERATOR, running_audience, running_core, running_worker

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import migrate
from soundmark.kit.text.timestamps import format_timestamp

FAULTS_S: Final = float(os.environ.get("FAULTS_S", "60"))
SEED: Final = int(os.environ.get("FAULTS_SEED", "1"))
BACK_WITHIN_S: Final = 5.0

_log: Final = structlog.get_logger()

pytestmark = [pytest.mark.xdist_group("failover"), pytest.mark.timeout(FAULTS_S * 2 + 240)]


@dataclass
class Deployment:
    """What the faults happen to."""

    pair: PostgresPair
    routes: list[Route]
    cores: list["Core"]
    ledger: Ledger
    back_after_s: list[float] = field(default_factory=list)

    async def switch(self, *routes: Route) -> None:
        """Lead these ways, or all of them, to the primary."""
        for route in routes or self.routes:
            await route.switch(self.pair.primary.port)

    async def fail_over(self, *routes: Route) -> None:
        """Promote the standby, lead to it, and note when the clients' requests succeed again."""
        await asyncio.to_thread(self.pair.fail_over)
        await self.switch(*routes)
        if not routes:
            self.back_after_s.append(await self.ledger.until_working())

    async def rejoin(self) -> None:
        """Kill the old primary, if it lives, and make it the standby of the new one."""
        await asyncio.to_thread(self.pair.standby.kill)
        await asyncio.to_thread(self.pair.rejoin)


@dataclass
class Core:
    """A Core that can be killed, and starts again at another address."""

    database_url: Secret
    audience_url: str
    url: str = ""
    process: ForkedCommand | None = None
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def start(self) -> None:
        self.url, self.process = self._stack.enter_context(
            running_core(self.database_url, self.audience_url, resolve_rate_limit="1000000", private_timeout_s="10")
        )

    def stop(self) -> None:
        self._stack.close()
        self.url, self.process = "", None


async def kill_primary(deployment: Deployment) -> None:
    await asyncio.to_thread(deployment.pair.primary.kill)
    await asyncio.sleep(0.5)
    await deployment.fail_over()
    await asyncio.sleep(1)
    await deployment.rejoin()


async def pause_primary(deployment: Deployment) -> None:
    """The machine stands still, and comes back as a primary that nobody needs."""
    old = deployment.pair.primary
    old.signal(signal.SIGSTOP)
    await asyncio.sleep(1)
    await deployment.fail_over()
    old.signal(signal.SIGCONT)
    await asyncio.sleep(2)
    await deployment.rejoin()


async def leave_one_core_behind(deployment: Deployment) -> None:
    """The old primary lives, and one Core still reaches it."""
    await deployment.fail_over(deployment.routes[1])
    await asyncio.sleep(12)
    await deployment.switch()
    deployment.back_after_s.append(await deployment.ledger.until_working())
    await deployment.rejoin()


async def pause_standby(deployment: Deployment) -> None:
    deployment.pair.standby.signal(signal.SIGSTOP)
    await asyncio.sleep(6)
    deployment.pair.standby.signal(signal.SIGCONT)
    await deployment.ledger.until_working()


async def lose_primary_that_restarted_alone(deployment: Deployment) -> None:
    """A restart makes visible what was written on the primary alone, and nobody was told of. It is lost later.

    So whoever repeats a request must not be told that it is done.
    """
    pair = deployment.pair
    await asyncio.to_thread(pair.standby.kill)
    await asyncio.sleep(2)
    await asyncio.to_thread(pair.primary.kill)
    await asyncio.to_thread(pair.primary.start)
    await deployment.switch()
    await asyncio.sleep(5)
    await asyncio.to_thread(pair.primary.kill)
    await asyncio.to_thread(pair.standby.start, pair.primary)
    await deployment.fail_over()
    await deployment.rejoin()


async def silence_one_way(deployment: Deployment) -> None:
    await deployment.routes[0].set("silent")
    await asyncio.sleep(4)
    await deployment.switch(deployment.routes[0])
    await deployment.ledger.until_working()


async def refuse_every_way(deployment: Deployment) -> None:
    for route in deployment.routes:
        await route.set("refusing")
    await asyncio.sleep(2)
    await deployment.switch()
    deployment.back_after_s.append(await deployment.ledger.until_working())


async def kill_a_core(deployment: Deployment) -> None:
    core = deployment.cores[0]
    assert core.process is not None
    core.process.kill()
    await asyncio.to_thread(core.stop)
    await asyncio.to_thread(core.start)
    deployment.ledger.urls = [each.url for each in deployment.cores]
    await deployment.ledger.until_working()


FAULTS: Final[tuple[Callable[[Deployment], Awaitable[None]], ...]] = (
    leave_one_core_behind,
    kill_primary,
    pause_standby,
    lose_primary_that_restarted_alone,
    pause_primary,
    silence_one_way,
    refuse_every_way,
    kill_a_core,
)


@pytest.fixture
async def deployment() -> AsyncIterator[Deployment]:
    """Two servers of PostgreSQL, two Cores, a worker and Audience, with a tenant that may issue a million Codes."""
    async with contextlib.AsyncExitStack() as stack:
        pair = stack.enter_context(running_pair())
        urls = {name: pair.create_database(f"soundmark_{name}") for name in ("core", "audience")}
        for name, url in urls.items():
            await asyncio.to_thread(migrate, url, f"soundmark.{name}")
        routes = [await stack.enter_async_context(Route(pair.primary.port)) for _ in range(2)]
        last = url_at(urls["audience"], routes[1].port)
        audience_url, _ = await asyncio.to_thread(stack.enter_context, running_audience(last))
        cores = [Core(url_at(urls["core"], route.port), audience_url) for route in routes]
        for core in cores:
            stack.callback(core.stop)
            await asyncio.to_thread(core.start)
        stack.enter_context(running_worker(url_at(urls["core"], routes[1].port), audience_url))
        tenant = await make_tenant(cores[0].url)
        pair.primary.execute(
            "WITH plan AS (INSERT INTO plans (id, name, product, monthly_code_quota, active, updated_at)"
            " VALUES ('plan_many', 'plan_many', 'codes', 1000000, true, now()) RETURNING id)"
            " UPDATE code_entitlements SET plan_id = plan.id FROM plan",
            database="soundmark_core",
        )
        measured = await make_measured_code(cores[0].url, tenant)
        ledger = Ledger([core.url for core in cores], OPERATOR, tenant, measured, random.Random(SEED))  # noqa: S311 - no secret
        yield Deployment(pair, routes, cores, ledger)


async def make_tenant(url: str) -> dict[str, str]:
    async with httpx2.AsyncClient(base_url=url, headers=OPERATOR, timeout=30, trust_env=False) as client:
        organization = (await client.post("/v1/organizations", json={"name": "Faults"})).json()["id"]
        project = await client.post("/v1/projects", json={"organization_id": organization, "name": "Faults"})
        return {"organization_id": organization, "project_id": project.json()["id"]}


async def make_measured_code(url: str, tenant: dict[str, str]) -> Measured:
    """Make an integration and a Code that it measures."""
    async with httpx2.AsyncClient(base_url=url, headers=OPERATOR, timeout=30, trust_env=False) as client:
        body = {**tenant, "mode": "demo", "retention_days": 14}
        integration = (await client.post("/v1/audience/integrations", json=body)).json()
        code = {
            **tenant,
            "issuer": "Faults",
            "expires_at": format_timestamp(datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)),
            "intent": {"type": "link", "action": "open", "resource": {"url": "https://example.org"}},
            "audience": {"enabled": True, "integration_id": integration["id"]},
        }
        issued = (await client.post("/v1/codes", json=code)).json()
    return Measured(integration["id"], integration["hmac_secret"], issued["broadcast_token"])


async def verify_audit_log(deployment: Deployment) -> None:
    """The chain of audit entries is whole, and everything in it is sealed before long."""
    query = {"organization_id": deployment.ledger.tenant["organization_id"]}
    url = f"{deployment.cores[1].url}/v1/audit-log/verification"
    async with httpx2.AsyncClient(headers=OPERATOR, timeout=60, trust_env=False) as client:
        answer = (await client.get(url, params=query)).json()
    assert answer["verified"] is True, answer
    assert answer["entries"] >= len(deployment.ledger.codes)


async def test_nothing_acknowledged_is_lost(deployment: Deployment) -> None:
    ledger, stopping = deployment.ledger, asyncio.Event()
    load = asyncio.create_task(ledger.run(stopping))
    ends_at_s = time.monotonic() + FAULTS_S
    number = 0
    try:
        await ledger.until_working()
        while number < len(FAULTS) or time.monotonic() < ends_at_s:
            fault = FAULTS[number % len(FAULTS)]
            number += 1
            await asyncio.sleep(1)
            began_s = time.monotonic()
            await fault(deployment)
            await ledger.until_working()
            _log.info("fault", name=fault.__name__, took_s=round(time.monotonic() - began_s, 1), **ledger.counts)
            assert ledger.contradictions == []
    finally:
        stopping.set()
        await load
    await ledger.check_everything()
    assert ledger.contradictions == []
    await verify_audit_log(deployment)
    back_after_s = [round(each, 1) for each in deployment.back_after_s]
    _log.info("faults", count=number, codes_count=len(ledger.codes), back_after_s=back_after_s)
    assert max(deployment.back_after_s) <= BACK_WITHIN_S
