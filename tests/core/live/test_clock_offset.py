"""The clock of a Core against the database's: exported, warned of, and a reason not to be ready."""

import asyncio
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core

from soundmark.core.live import clock_offset
from soundmark.core.live.clock_offset import ClockOffset
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.promotions import Promotions


async def measure(url: Secret, clock: FakeClock) -> tuple[float, list[str], bool | str]:
    """Return the exported offset, the events logged, and whether the clock is right."""
    db = Database(url, pool_size=1, application_name="test")
    await db.open()
    offset = ClockOffset(db, clock, Promotions(clock))
    try:
        with capture_logs() as logs:
            await offset.measure()
    finally:
        await db.close()
    exported = REGISTRY.get_sample_value("soundmark_clock_offset_seconds")
    assert exported is not None
    events = [line["event"] for line in logs if line["log_level"] == "warning"]
    return exported, events, await offset.is_right()


@pytest.mark.parametrize(
    ("shift_s", "events", "result"),
    [
        (0, [], True),
        (0.5, [], True),
        (-10, ["clock_offset"], True),
        (10, ["clock_offset"], True),
        (-60, ["clock_offset"], False),
        (60, ["clock_offset"], False),
    ],
)
async def test_an_offset_is_exported_and_judged(
    database_url: Secret, shift_s: float, events: list[str], result: bool | str
) -> None:
    clock = FakeClock()
    clock.advance(seconds=shift_s)
    exported, logged, is_right = await measure(database_url, clock)
    assert exported == pytest.approx(shift_s, abs=0.4)
    assert (logged, is_right) == (events, result)


async def test_a_slow_round_trip_makes_no_clock_wrong(database_url: Secret) -> None:
    class SlowClock(FakeClock):
        """Each look at the monotonic clock is two minutes after the one before."""

        looks_count = 0

        def monotonic_s(self) -> float:
            self.looks_count += 1
            return super().monotonic_s() + 120 * self.looks_count

    _, events, is_right = await measure(database_url, SlowClock())
    assert (events, is_right) == ([], True)


async def test_a_core_whose_clock_is_wrong_is_not_ready_until_it_is_mended(
    spare_database_url: Secret, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_offset, "MEASURE_EVERY_S", 0.05)
    clock = FakeClock()
    clock.advance(seconds=60)
    async with running_core(core_settings(spare_database_url), clock) as api:
        answer = await api.get("/readyz")
        assert (answer.status, answer.json["unavailable"]) == (503, ["clock"])
        clock.reset()
        async with asyncio.timeout(30):
            while (await api.get("/readyz")).status != 200:  # noqa: ASYNC110 - measured in its time
                await asyncio.sleep(0.05)


async def test_a_database_that_is_away_leaves_the_last_offset(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_offset, "MEASURE_EVERY_S", 0.0)
    tried = asyncio.Event()

    class AwayDatabase:
        attempts = 0

        def snapshot(self) -> Any:
            self.attempts += 1
            if self.attempts > 2:
                tried.set()
            raise DatabaseUnavailable if self.attempts % 2 else ValueError

    offset = ClockOffset(AwayDatabase(), api.clock, Promotions(api.clock))  # type: ignore[arg-type]  # stands in
    measuring = asyncio.create_task(offset.keep_measuring())
    with capture_logs() as logs:
        async with asyncio.timeout(30):
            await tried.wait()
    measuring.cancel()
    assert "clock_not_compared" in {line["event"] for line in logs}
    assert await offset.is_right() is True
