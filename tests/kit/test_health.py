"""`/healthz` and `/readyz`."""

import asyncio

import httpx
import pytest
from starlette.applications import Starlette

from soundmark.kit import health


async def passes() -> bool:
    return True


async def fails() -> bool:
    return False


async def breaks() -> bool:
    raise LookupError("a password")


async def hangs() -> bool:
    await asyncio.Event().wait()
    return True


async def ask(path: str, checks: dict[str, health.Check], warn: health.Warn = lambda: None) -> httpx.Response:
    app = Starlette(routes=health.health_routes(checks, warn))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        return await client.get(path)


async def test_a_process_that_answers_is_up_whatever_it_needs() -> None:
    answer = await ask("/healthz", {"database": breaks})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_process_is_ready_when_every_check_passes() -> None:
    answer = await ask("/readyz", {"database": passes, "audio": passes})
    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


async def test_a_warning_is_told_and_holds_nothing_back() -> None:
    """A load balancer goes by the status, and must not take a process away for a server that is only old."""
    answer = await ask("/readyz", {"database": passes}, lambda: "PostgreSQL is old.")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "detail": "PostgreSQL is old."})
    answer = await ask("/readyz", {"database": fails}, lambda: "PostgreSQL is old.")
    assert (answer.status_code, answer.json()) == (503, {"status": "not_ready", "unavailable": ["database"]})


async def test_what_is_not_available_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that is late or raises counts as not available, and says nothing more."""
    monkeypatch.setattr(health, "CHECK_TIMEOUT_S", 0.05)
    answer = await ask("/readyz", {"late": hangs, "broken": breaks, "fine": passes, "away": fails})
    assert answer.status_code == 503
    assert answer.json() == {"status": "not_ready", "unavailable": ["away", "broken", "late"]}


async def test_checks_are_asked_at_the_same_time() -> None:
    """Slow ones do not add up beyond a probe's patience."""
    met = asyncio.Barrier(2)

    async def meets() -> bool:
        await met.wait()
        return True

    assert (await ask("/readyz", {"one": meets, "other": meets})).status_code == 200
