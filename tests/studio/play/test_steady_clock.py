"""The service's time, whatever happens to the machine's clock."""

from datetime import timedelta
from email.utils import format_datetime

import httpx2
import pytest
from support.processes.fake_clock import FakeClock

from soundmark.studio.play.steady_clock import DatedTransport, SteadyClock

CLOSE = timedelta(seconds=1)


def test_a_clock_that_is_set_back_or_forward_changes_nothing() -> None:
    machine = FakeClock()
    clock = SteadyClock(machine)
    begun_at = clock.now()
    machine.advance(hours=-3)
    assert abs(clock.now() - begun_at) < CLOSE
    machine.shift += timedelta(hours=9)
    assert abs(clock.now() - begun_at) < CLOSE
    machine.advance(minutes=10)
    assert abs(clock.now() - begun_at - timedelta(minutes=10)) < CLOSE


def test_it_does_not_begin_before_the_time_of_an_earlier_run() -> None:
    """A machine without a battery wakes up in the past, and an expired Code must not sound again."""
    machine = FakeClock()
    later = machine.now() + timedelta(days=3)
    assert abs(SteadyClock(machine, later).now() - later) < CLOSE
    assert abs(SteadyClock(machine, machine.now() - timedelta(days=3)).now() - machine.now()) < CLOSE


@pytest.mark.parametrize(("ahead_s", "is_taken"), [(3600, True), (-3600, True), (1, False), (-1, False)])
def test_it_takes_the_service_s_time_but_not_the_rounding_of_it(ahead_s: int, is_taken: bool) -> None:
    machine = FakeClock()
    machine.freeze()
    clock = SteadyClock(machine)
    stated = machine.now() + timedelta(seconds=ahead_s)
    clock.take_date(format_datetime(stated, usegmt=True))
    expected = stated if is_taken else machine.now()
    assert abs(clock.now() - expected) < CLOSE / 2


@pytest.mark.parametrize("date", ["", "yesterday", "Thu, 26 Nov 2026 12:00:00", "Thu, 99 Nov 2026 12:00:00 GMT"])
def test_a_date_that_is_none_is_ignored(date: str) -> None:
    machine = FakeClock()
    clock = SteadyClock(machine)
    clock.take_date(date)
    assert abs(clock.now() - machine.now()) < CLOSE


async def test_each_response_of_the_service_states_the_time() -> None:
    machine = FakeClock()
    clock = SteadyClock(machine)
    stated = format_datetime(machine.now() + timedelta(hours=1), usegmt=True)
    inner = httpx2.MockTransport(lambda _: httpx2.Response(200, headers={"date": stated}))
    transport = DatedTransport(inner, clock)
    await transport.handle_async_request(httpx2.Request("GET", "http://127.0.0.1:9/"))
    await transport.aclose()
    assert abs(clock.now() - machine.now() - timedelta(hours=1)) < CLOSE
