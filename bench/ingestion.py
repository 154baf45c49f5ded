"""Benchmarks of ingestion: verified events that are on disk when they are answered."""

import base64
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Final

import httpx2

from bench import wrk
from bench.audience_server import NAIVE
from bench.delivering import Deliveries
from bench.figures import Figure
from bench.measuring import MASTER_KEY, Measured, measured, write_events
from bench.server import CONSTANT
from bench.service import Service, free_port, process, until
from bench.wrk import Demand, against
from soundmark.embedded.postgres import RunningCluster

_ROUNDS: Final = 5
_ROUND_S: Final = 3.0
_WARM_S: Final = 2.0
PER_S_MAX: Final = 16_000  # Events that are prepared for each second of a load.
_NAIVE_PER_S_MAX: Final = 6_000
_FEW, _MANY = 10_000, 10_000_000
_ANSWER_BYTES: Final = len('{"event_id":"evt_1234567890123456789012","status":"recorded"}')
AUDIENCE_CREDENTIAL: Final = "audience-credential-of-the-benchmark"
EVENTS: Final = "/v1/events"


def ingestion(cluster: RunningCluster) -> list[Figure]:
    """Measure one process, 64 connections and distinct events against a constant answer and one transaction each."""
    database = measured(cluster, "ingestion", _FEW)
    most, naive_most, warm = (
        int(rate * s) for rate, s in ((PER_S_MAX, _ROUND_S), (_NAIVE_PER_S_MAX, _ROUND_S), (PER_S_MAX, _WARM_S))
    )
    with audience(database) as service, ready_events(_ROUNDS * (most + naive_most) + 2 * warm) as events:
        events.run(service.base_url, EVENTS, seconds=_WARM_S, most=warm)
        events.run(service.base_url, NAIVE, seconds=_WARM_S, most=warm)
        constants, loads, naives = [], [], []
        for number in range(_ROUNDS):
            demand = Demand([f"{CONSTANT}{_ANSWER_BYTES}"])
            constants.append(wrk.run(service.base_url, demand, seconds=_ROUND_S, seed=number))
            loads.append(events.run(service.base_url, EVENTS, seconds=_ROUND_S, most=most))
            naives.append(events.run(service.base_url, NAIVE, seconds=_ROUND_S, most=naive_most))
    p50, p99 = median(load.p50_ms for load in loads), median(load.p99_ms for load in loads)
    return [
        against("Events, verified and committed", loads, constants, "constant answer of the same size", 0.15),
        against("The same", loads, naives, "a transaction for each event (bench/one_by_one.py)", 3),
        Figure("Events: p99", f"p99 {p99:.1f} ms", f"p50 {p50:.1f} ms", p99 / p50, "at most", 4),
    ]


def ingestion_growth(cluster: RunningCluster) -> list[Figure]:
    """Measure ten million stored events against ten thousand, each in its own process and database, in turns."""
    few, many = measured(cluster, "few_events", _FEW), measured(cluster, "many_events", _MANY)
    most = int(PER_S_MAX * _ROUND_S)
    with audience(few) as of_few, audience(many) as of_many, ready_events((2 * _ROUNDS + 4) * most) as events:
        for service in (of_few, of_many) * 2:
            events.run(service.base_url, EVENTS, seconds=_ROUND_S, most=most)
        fews, manys = [], []
        for _ in range(_ROUNDS):
            fews.append(events.run(of_few.base_url, EVENTS, seconds=_ROUND_S, most=most))
            manys.append(events.run(of_many.base_url, EVENTS, seconds=_ROUND_S, most=most))
    return [against("Events with 10,000,000 stored", manys, fews, "with 10,000 stored", 0.85)]


@contextlib.contextmanager
def audience(database: Measured, *, more: Mapping[str, str] | None = None) -> Iterator[Service]:
    """Run Audience in one process, with the references beside it (bench/audience_server.py)."""
    environ = {
        **os.environ,
        "SOUNDMARK_AUDIENCE_DATABASE_URL": database.url.reveal(),
        "SOUNDMARK_AUDIENCE_CREDENTIAL": AUDIENCE_CREDENTIAL,
        "SOUNDMARK_MASTER_KEY": base64.urlsafe_b64encode(MASTER_KEY).decode().rstrip("="),
        **(more or {}),
    }
    with (
        free_port() as port,
        process([sys.executable, "-m", "bench.audience_server", str(port)], environ) as started,
    ):
        service = Service(f"http://127.0.0.1:{port}", (started,))
        until(lambda: httpx2.get(service.base_url + "/readyz").status_code == 200)
        yield service


@contextlib.contextmanager
def ready_events(count: int) -> Iterator[Deliveries]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events")
        write_events(path, count)
        yield Deliveries(path)
