"""State machines whose rules call the running app, and whose model says what it must answer."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

import hypothesis
from hypothesis import HealthCheck
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from support.processes.fake_clock import FakeClock

T = TypeVar("T")


class AppMachine(RuleBasedStateMachine):
    """A machine that runs in a thread beside the event loop of the app, whose clock stands still between its rules."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: FakeClock) -> None:
        super().__init__()
        self._loop = loop
        self.clock = clock
        clock.freeze()

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns on the event loop of the app."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def advance_to(self, moment: datetime) -> None:
        """Move the clock forward to the moment, unless it is past."""
        if moment > self.now:
            self.clock.advance(seconds=(moment - self.now) / timedelta(seconds=1))


async def run_machine(make: Callable[[asyncio.AbstractEventLoop], AppMachine], *, examples: int, steps: int) -> None:
    """Run machines until one fails, or `examples` of them have made `steps` steps each; the same ones in every run."""
    settings = hypothesis.settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(run_state_machine_as_test, lambda: make(loop), settings=settings)
