"""Benchmarks of the card webhook: against what it cannot do without, in a storm, and beside other work."""

import asyncio
import contextlib
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final

import httpx2
import psutil
import psycopg

from bench import purchases, seed, webhook_reference, wrk
from bench.figures import Figure, rates, ratio_of_rounds
from bench.issuing import issuance_demand
from bench.service import Seeded, Service, core, free_port, process, seeded, until
from bench.wrk import Demand
from soundmark.embedded.postgres import RunningCluster

_PATH: Final = "/v1/billing/webhooks/card"
_ROUNDS: Final = 5
_EACH: Final = 300
_CONNECTIONS: Final = 16
_STORM_EVENTS: Final = 500
_STORM_DELIVERIES: Final = 10_000
_STORM_CONNECTIONS: Final = 32
_OTHERS_S: Final = 4.0
_STORM_PROCESSOR: Final = 0
_OTHER_PROCESSOR: Final = 1
_BESIDE_ROUNDS: Final = 3
_CODES: Final = 10_000
_PURCHASES: Final = (_ROUNDS + 1) * _EACH + 2 * _STORM_EVENTS
_MIB_MAX: Final = 20.0


def webhooks(cluster: RunningCluster) -> list[Figure]:
    """Measure card events that are verified, reconciled with a provider on loopback, and committed."""
    database = seeded(cluster, _CODES)
    purchases.seed_checkouts(database.everything, _PURCHASES)
    numbers = itertools.count()
    with _card_provider() as (card_url, provider):
        environ = {
            "SOUNDMARK_CARD_API_URL": card_url,
            "SOUNDMARK_CARD_SECRET_KEY": purchases.CARD_SECRET,
            "SOUNDMARK_CARD_WEBHOOK_SECRET": purchases.WEBHOOK_SECRET,
        }
        with core(database, more=environ) as service:
            figures = [*_against_reference(service, numbers), *_storm(database, service, numbers)]
            storming = (provider, *service.processes, *_connections_of_core(database))
            with core(database, more=environ) as others, _sharing_processors(storming, others.processes):
                return [*figures, *_beside(service, others, numbers)]


def _against_reference(service: Service, numbers: Iterator[int]) -> list[Figure]:
    rounds, references, p50s, p99s = [], [], [], []
    for is_counted in (False, *[True] * _ROUNDS):
        of_round = list(itertools.islice(numbers, _EACH))
        reference = _deliver(service.base_url + webhook_reference.PATH, of_round, _CONNECTIONS)
        measured = _deliver(service.base_url + _PATH, of_round, _CONNECTIONS)
        if is_counted:
            rounds.append(measured.per_s)
            references.append(reference.per_s)
            p50s.append(measured.percentile_ms(50))
            p99s.append(measured.percentile_ms(99))
    p50_ms, p99_ms = median(p50s), median(p99s)
    return [
        rates("Card events, each of a purchase of its own", rounds, "signature, one read, one commit", references, 0.4),
        Figure(
            "Card events: p99 over p50",
            f"p99 {p99_ms:.0f} ms",
            f"p50 {p50_ms:.0f} ms",
            ratio_of_rounds(p99s, p50s),
            "at most",
            5,
        ),
    ]


def _storm(database: Seeded, service: Service, numbers: Iterator[int]) -> list[Figure]:
    """Deliver each of 500 events twenty times, all mixed."""
    events = list(itertools.islice(numbers, _STORM_EVENTS))
    before_mib = service.resident_mib()
    deliveries = events * (_STORM_DELIVERIES // _STORM_EVENTS)
    measured = _deliver(service.base_url + _PATH, deliveries, _STORM_CONNECTIONS)
    grown_mib = service.resident_mib() - before_mib
    with psycopg.connect(database.everything.reveal()) as connection:
        row = connection.execute(
            "SELECT count(*), count(DISTINCT checkout_id) FROM subscriptions WHERE checkout_id = ANY(%s)",
            ([purchases.checkout_id_of(number) for number in events],),
        ).fetchone()
    assert row is not None, "a count is one row"
    if row != (_STORM_EVENTS, _STORM_EVENTS):
        raise RuntimeError(f"{_STORM_EVENTS} events made {row} subscriptions")
    return [
        Figure(
            f"{_STORM_DELIVERIES:,} deliveries of {_STORM_EVENTS} events on {_STORM_CONNECTIONS} connections: counted",
            f"{measured.per_s:,.0f}/s",
            "",
            row[0],
            "at most",
            _STORM_EVENTS,
        ),
        Figure(
            "Core's memory after that storm",
            f"before: {before_mib:.0f} MiB",
            "",
            grown_mib,
            "at most",
            _MIB_MAX,
            " MiB",
        ),
    ]


def _beside(service: Service, others: Service, numbers: Iterator[int]) -> list[Figure]:
    """Measure another Core on the other processor's share: beside a storm, and beside plain computing.

    What sends, receives, answers and stores the storm's events, or computes, has one processor. The other Core and what
    loads it have the other one; their part of PostgreSQL runs on both.
    """
    events = list(itertools.islice(numbers, _STORM_EVENTS))
    storm = events * (_STORM_DELIVERIES // _STORM_EVENTS)
    figures = []
    demands = {
        "Resolution": Demand([f"/v1/resolve/{seed.token_of(number)}" for number in range(_CODES)]),
        "Issuance": issuance_demand(),
    }
    for name, demand in demands.items():
        wrk.run(others.base_url, demand, seconds=_OTHERS_S)
        alone, beside = [], []
        for seed_of_round in range(_BESIDE_ROUNDS):
            with _computing():
                alone.append(wrk.run(others.base_url, demand, seconds=_OTHERS_S, seed=seed_of_round).requests_per_s)
            with ThreadPoolExecutor(1) as pool:
                storming = pool.submit(_storm_on_one_processor, service.base_url + _PATH, storm)
                beside.append(wrk.run(others.base_url, demand, seconds=_OTHERS_S, seed=seed_of_round).requests_per_s)
                storming.result()
        figures.append(
            rates(
                f"{name} by another process beside a storm of card events",
                beside,
                "beside a process that only computes",
                alone,
                0.8,
            )
        )
    return figures


@dataclass(frozen=True, slots=True)
class _Delivered:
    """The time that deliveries took, in all and each."""

    took_s: float
    each_s: Sequence[float]

    @property
    def per_s(self) -> float:
        return len(self.each_s) / self.took_s

    def percentile_ms(self, percent: int) -> float:
        return quantiles(self.each_s, n=100)[percent - 1] * 1e3


def _storm_on_one_processor(url: str, numbers: Sequence[int]) -> None:
    os.sched_setaffinity(0, [_STORM_PROCESSOR])  # Of this thread alone.
    _deliver(url, numbers, _STORM_CONNECTIONS)


def _deliver(url: str, numbers: Sequence[int], connections: int) -> _Delivered:
    """Deliver the events of these purchases as fast as the connections allow. Each must be processed."""
    return asyncio.run(_deliver_all(url, numbers, connections))


async def _deliver_all(url: str, numbers: Sequence[int], connections: int) -> _Delivered:
    waiting = iter([purchases.sign_event(number) for number in numbers])
    each_s: list[float] = []

    async def work(client: httpx2.AsyncClient) -> None:
        for body, signature in waiting:
            headers = {"Content-Type": "application/json", "Stripe-Signature": signature}
            began_s = time.perf_counter()
            answer = await client.post(url, content=body, headers=headers)
            each_s.append(time.perf_counter() - began_s)
            if answer.status_code != httpx2.codes.OK or answer.json() != {"status": "processed"}:
                raise RuntimeError(f"an event was answered {answer.status_code}: {answer.text}")

    limits = httpx2.Limits(max_connections=connections)
    async with httpx2.AsyncClient(limits=limits, timeout=30) as client:
        began_s = time.perf_counter()
        await asyncio.gather(*(work(client) for _ in range(connections)))
        return _Delivered(time.perf_counter() - began_s, each_s)


def _connections_of_core(database: Seeded) -> list[psutil.Process]:
    """Return PostgreSQL's processes for the connections of the only Core on this database."""
    with psycopg.connect(database.everything.reveal()) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s",
            ("soundmark-core",),
        ).fetchall()
    return [psutil.Process(pid) for (pid,) in rows]


@contextlib.contextmanager
def _sharing_processors(storming: Sequence[psutil.Process], others: Sequence[psutil.Process]) -> Iterator[None]:
    """Keep one group of processes on one processor, and the other group and this process on another."""
    for each in storming:
        each.cpu_affinity([_STORM_PROCESSOR])
    for each in others:
        each.cpu_affinity([_OTHER_PROCESSOR])
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [_OTHER_PROCESSOR])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def _card_provider() -> Iterator[tuple[str, psutil.Process]]:
    with free_port(is_shared=False) as port:
        pass
    with process([sys.executable, "-m", "bench.card_server", str(port)], {}) as provider:
        url = f"http://127.0.0.1:{port}"
        until(lambda: httpx2.get(f"{url}/v1/subscriptions/sub_bench_0").status_code == httpx2.codes.OK)
        yield url, provider


@contextlib.contextmanager
def _computing() -> Iterator[None]:
    """Keep one processor busy."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as spinning:
        psutil.Process(spinning.pid).cpu_affinity([_STORM_PROCESSOR])
        try:
            yield
        finally:
            spinning.kill()
