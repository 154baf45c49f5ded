"""Long work rests while the event loop is busy, and only then."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from soundmark.kit import pacing
from soundmark.kit.pacing import Pacer


@dataclass
class Times:
    """The clocks of a pacer, and how long it rested."""

    now_s: float = 100.0
    busy_s: float = 10.0
    rested_s: float = 0.0

    def step(self, passed_s: float, busy_s: float) -> None:
        self.now_s += passed_s
        self.busy_s += busy_s

    async def sleep(self, duration_s: float) -> None:
        self.rested_s += duration_s
        self.now_s += duration_s


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    """A processor whose time the test decides."""
    times = Times()
    # In this module only: a Core that other tests share may be asleep on the same event loop.
    clock = SimpleNamespace(perf_counter=lambda: times.now_s, thread_time=lambda: times.busy_s)
    monkeypatch.setattr(pacing, "time", clock)
    monkeypatch.setattr(pacing, "asyncio", SimpleNamespace(sleep=times.sleep))
    return times


async def test_work_on_an_idle_loop_does_not_rest(times: Times) -> None:
    pacer = Pacer()
    for _ in range(3):
        times.step(0.010, 0.004)
        await pacer.rest()
    assert times.rested_s == 0


async def test_work_on_a_busy_loop_rests_three_times_as_long_as_it_worked(times: Times) -> None:
    pacer = Pacer()
    times.step(0.010, 0.009)
    await pacer.rest()
    assert times.rested_s == pytest.approx(0.030)


async def test_the_rest_counts_for_the_share_and_not_as_work(times: Times) -> None:
    pacer = Pacer()
    times.step(0.010, 0.009)
    await pacer.rest()
    times.step(0.010, 0.030)  # Also while it rested, the loop was busy.
    await pacer.rest()
    assert times.rested_s == pytest.approx(0.060)
    times.step(0.010, 0.005)  # It was idle while the work rested.
    await pacer.rest()
    assert times.rested_s == pytest.approx(0.060)
