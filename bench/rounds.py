"""Rounds of loads on services, in turns."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from bench import wrk
from bench.service import Seeded, Service
from bench.wrk import Demand, Load
from soundmark.embedded.postgres import RunningCluster


@dataclass(slots=True)
class Pace:
    """How often and for how long the parts measure that know of it."""

    rounds: int = 5
    round_s: float = 4.0
    warm_s: float = 4.0


pace: Final = Pace()


def in_turns(
    demands: Sequence[tuple[Service, Demand]], *, meanwhile: Callable[[], object] | None = None
) -> list[list[Load]]:
    """Return the loads of each demand, one per round; `meanwhile` runs during the last demand of a round."""
    loads: list[list[Load]] = [[] for _ in demands]
    for number in range(pace.rounds):
        for place, (service, demand) in enumerate(demands):
            if meanwhile is not None and place == len(demands) - 1:
                loads[place].append(_watched(service, demand, number, meanwhile))
            else:
                loads[place].append(wrk.run(service.base_url, demand, seconds=pace.round_s, seed=number))
    return loads


def _watched(service: Service, demand: Demand, number: int, meanwhile: Callable[[], object]) -> Load:
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(wrk.run, service.base_url, demand, seconds=pace.round_s, seed=number)
        time.sleep(pace.round_s / 2)
        meanwhile()
        return running.result()


def processor_ms(service: Service, demand: Demand, number: int, cluster: RunningCluster | None = None) -> float:
    """Return the processor time that the service spends on one request, with PostgreSQL's if `cluster` is given."""
    before_s = service.processor_s(cluster)
    load = wrk.run(service.base_url, demand, seconds=pace.round_s, seed=number)
    return (service.processor_s(cluster) - before_s) / load.requests * 1e3


def once_each(service: Service, database: Seeded) -> Load:
    """Request every Code, so that the measurement is representative of a long-running process.

    Return the first of its loads: one is enough on a fast machine.
    """
    left = database.paths()
    loads: list[Load] = []
    while left:
        seconds = len(left) / loads[-1].requests_per_s if loads else database.count / 4_500
        demand = Demand(left, is_in_order=True)
        loads.append(wrk.run(service.base_url, demand, seconds=max(pace.warm_s, seconds)))
        left = left[loads[-1].requests :]
    return loads[0]
