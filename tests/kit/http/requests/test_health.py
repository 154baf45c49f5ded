"""`/healthz` and `/readyz`."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx2
import pytest
from starlette.applications import Starlette

from soundmark.kit.http.requests import health
from soundmark.kit.http.requests.health import HealthCheck


async def passes() -> bool:
    return True


async def fails() -> bool:
    return False


async def breaks() -> bool:
    raise LookupError("a password")


async def hangs() -> bool:
    await asyncio.Event().wait()
    return True


@contextlib.asynccontextmanager
async def client_of(*checks: health.HealthCheck) -> AsyncIterator[httpx2.AsyncClient]:
    app = Starlette(routes=health.health_routes(*checks))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as client:
        yield client


async def ask(path: str, *checks: health.HealthCheck) -> httpx2.Response:
    async with client_of(*checks) as client:
        return await client.get(path)


async def test_a_process_that_answers_is_up_whatever_it_depends_on() -> None:
    answer = await ask("/healthz", HealthCheck("database", breaks, "process"))
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_process_is_ready_when_every_check_passes() -> None:
    answer = await ask("/readyz", HealthCheck("database", passes, "shared"), HealthCheck("audio", passes, "shown"))
    assert (answer.status_code, answer.json()) == (
        200,
        {"status": "ready", "unavailable": [], "degraded": []},
    )


async def test_an_unavailable_dependency_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that is late or raises counts as down, and reports nothing more."""
    monkeypatch.setattr(health, "CHECK_TIMEOUT_S", 0.05)
    checks = {"late": hangs, "broken": breaks, "fine": passes, "away": fails}
    answer = await ask("/readyz", *(HealthCheck(name, check, "process") for name, check in checks.items()))
    assert answer.status_code == 503
    assert answer.json() == {
        "status": "not_ready",
        "unavailable": ["away", "broken", "late"],
        "degraded": [],
    }


async def test_what_is_only_shown_leaves_the_process_in_service() -> None:
    answer = await ask("/readyz", HealthCheck("database", passes, "process"), HealthCheck("audio", fails, "shown"))
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ready",
        "unavailable": [],
        "degraded": ["audio"],
    }


async def test_a_load_balancer_can_leave_out_what_every_process_shares() -> None:
    """Otherwise it takes all of them out at once when their database fails over, and answers for them."""
    async with client_of(HealthCheck("database", fails, "shared"), HealthCheck("clock", passes, "process")) as client:
        assert (await client.get("/readyz")).status_code == 503
        answer = await client.get("/readyz", params={"scope": "process"})
        assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert (await ask("/readyz?scope=process", HealthCheck("clock", fails, "process"))).status_code == 503


async def test_checks_run_at_the_same_time() -> None:
    """Otherwise slow checks would add up beyond a probe's timeout."""
    met = asyncio.Barrier(2)

    async def meets() -> bool:
        await met.wait()
        return True

    assert (
        await ask("/readyz", HealthCheck("one", meets, "shared"), HealthCheck("other", meets, "shared"))
    ).status_code == 200


class Counted:
    """A check that counts its runs, and answers when it is allowed to."""

    def __init__(self) -> None:
        self.count = 0
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.passes = True

    async def __call__(self) -> bool:
        self.count += 1
        self.is_asked.set()
        await self.may_answer.wait()
        return self.passes


async def test_fifty_at_once_cause_one_check() -> None:
    """`/readyz` needs no credential, and asks the database and other components."""
    check = Counted()
    async with client_of(HealthCheck("database", check, "process")) as client:
        asking = [asyncio.create_task(client.get("/readyz")) for _ in range(50)]
        await check.is_asked.wait()
        check.may_answer.set()
        answers = await asyncio.gather(*asking)

    assert [answer.status_code for answer in answers] == [200] * 50
    assert check.count == 1


async def test_an_answer_is_shared_for_a_second_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for a failure as much as for readiness."""
    check = Counted()
    check.may_answer.set()
    check.passes = False
    now_s = asyncio.get_running_loop().time()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now_s)
    async with client_of(HealthCheck("database", check, "process")) as client:
        first = await client.get("/readyz")
        check.passes = True
        now_s += 0.999
        again = await client.get("/readyz")
        now_s += 0.001
        later = await client.get("/readyz")

    assert [answer.status_code for answer in (first, again, later)] == [503, 503, 200]
    assert first.content == again.content
    assert check.count == 2


async def test_a_client_that_hangs_up_does_not_end_the_check_of_others() -> None:
    check = Counted()
    async with client_of(HealthCheck("database", check, "process")) as client:
        first, second = (asyncio.create_task(client.get("/readyz")) for _ in range(2))
        await check.is_asked.wait()
        first.cancel()
        await asyncio.wait({first})
        check.may_answer.set()

        assert (await second).status_code == 200
    assert (first.cancelled(), check.count) == (True, 1)
