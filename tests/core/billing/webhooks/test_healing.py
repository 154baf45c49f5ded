"""The loop of the worker that asks the local provider about what is due."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs
from support.billing.local_purchase import begin_local_purchase, set_payment
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.billing.webhooks import healing
from soundmark.kit.http.responses.problems import DatabaseUnavailable

Between = Callable[[int], Awaitable[object]]


async def run_rounds(work: Context, monkeypatch: pytest.MonkeyPatch, count: int, between: Between) -> list[float]:
    """Run some rounds of the loop, with `between` after each but the last; return its pauses in seconds."""
    pauses: list[float] = []

    async def note(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == count:
            raise asyncio.CancelledError
        await between(len(pauses))

    monkeypatch.setattr(healing, "asyncio", SimpleNamespace(sleep=note))
    with pytest.raises(asyncio.CancelledError):
        await healing.keep_asking(work)
    return pauses


async def test_it_asks_about_what_is_due(
    tenant: Tenant,
    rival: Rival,
    work: Context,
    local: RunningSandbox,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unpaid = await begin_local_purchase(tenant, rival, local, status="PENDING")
    await set_payment(local, unpaid.payment_id, status="SUCCESS")

    async def pass_time(_: int) -> None:
        clock.advance(minutes=3)

    assert await run_rounds(work, monkeypatch, 2, pass_time) == [3, 3]
    assert await rival.rows("SELECT status FROM checkouts") == [("completed",)]


async def test_before_the_provider_is_configured_it_looks_less_often(
    rival: Rival, work: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once it is, it does not look whether it still is."""
    rename = "UPDATE platform_secrets SET name = '{}' WHERE name = '{}'"
    moves = {2: rename.format("local_public_key", "set_aside"), 3: "DELETE FROM platform_secrets"}
    await rival.run(rename.format("set_aside", "local_public_key"))

    async def move(number: int) -> None:
        if number in moves:
            await rival.run(moves[number])

    assert await run_rounds(work, monkeypatch, 4, move) == [10, 10, 3, 3]


async def test_no_failure_ends_it(
    tenant: Tenant,
    rival: Rival,
    work: Context,
    local: RunningSandbox,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It insists neither on a provider that fails nor on a fault of its own."""
    await begin_local_purchase(tenant, rival, local, status="PENDING")
    clock.advance(minutes=3)
    await local.misbehave("local", "refused", times=1)

    errors = {1: DatabaseUnavailable(), 2: ValueError("odd")}

    async def break_it(number: int) -> None:
        monkeypatch.setattr(healing, "reread_local", _raising(errors[number]))

    with capture_logs() as logs:
        assert await run_rounds(work, monkeypatch, 3, break_it) == [60, 3, 60]
    assert [(line["event"], line["error"]) for line in logs if line["log_level"] == "error"] == [
        ("local_payments_not_reread", "ValueError")
    ]


def _raising(error: Exception) -> Callable[[Context], Awaitable[int]]:
    async def fail(_: Context) -> int:
        raise error

    return fail
