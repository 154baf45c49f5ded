"""Benchmarks of retention: how much of its rate ingestion keeps while a million events are deleted."""

import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any, Final

import httpx2
import psycopg

from bench.delivering import Deliveries
from bench.figures import Figure, ratio_of_rounds
from bench.ingestion import AUDIENCE_CREDENTIAL, EVENTS, PER_S_MAX, audience, ready_events
from bench.measuring import INTEGRATION_ID, ORGANIZATION_ID, PROJECT_ID, Measured, measured
from soundmark.embedded.postgres import RunningCluster

_LOAD_S: Final = 14.0  # Longer than a deletion takes.
_ARRIVING_S: Final = 1.0  # Until all connections are open.
_BEFORE_S: Final = 3.0  # Of each load: the part before the deletion, whose rate is the reference.
_CUTS: Final = 3
_CUT_DAYS: Final = 10
_CUT_EVENTS: Final = 1_000_000
_TABLES: Final = ("events", "event_ids", "spent_proofs")


def retention_cuts(cluster: RunningCluster) -> list[Figure]:
    """Measure three deletions of a million events each, of the same integration that records meanwhile."""
    database = measured(cluster, "retention", 0)
    _store_aged(database)
    most = int(PER_S_MAX * _LOAD_S)
    befores, besides, cuts_s = [], [], []
    with audience(database) as service, ready_events((_CUTS + 1) * most) as events:
        events.run(service.base_url, EVENTS, seconds=_BEFORE_S, most=most)
        for number in range(_CUTS):
            before_per_s, beside_per_s, cut_s = _beside_a_cut(database, service.base_url, events, number)
            befores.append(before_per_s)
            besides.append(beside_per_s)
            cuts_s.append(cut_s)
    return [
        Figure(
            f"Events beside a retention cut of {_CUT_EVENTS:,} events",
            f"{median(besides):,.0f}/s; the cuts took {', '.join(f'{cut_s:.1f}' for cut_s in cuts_s)} s",
            f"just before: {median(befores):,.0f}/s",
            ratio_of_rounds(besides, befores),
            "at least",
            0.7,
        )
    ]


def _beside_a_cut(database: Measured, base_url: str, events: Deliveries, number: int) -> tuple[float, float, float]:
    """Return the committed events per second just before a deletion and during it, and the duration of the deletion."""
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection, ThreadPoolExecutor(1) as pool:
        load = pool.submit(events.run, base_url, EVENTS, seconds=_LOAD_S, most=int(PER_S_MAX * _LOAD_S))
        time.sleep(_ARRIVING_S)
        at_s, count = _committed(connection)
        time.sleep(_BEFORE_S)
        begun_s, begun = _committed(connection)
        _cut(base_url, number)
        ended_s, ended = _committed(connection)
        if load.done():
            raise RuntimeError("the cut took longer than the load")
        load.result()
    return (begun - count) / (begun_s - at_s), (ended - begun) / (ended_s - begun_s), ended_s - begun_s


def _committed(connection: psycopg.Connection[Any]) -> tuple[float, int]:
    row = connection.execute("SELECT COALESCE(sum(events), 0)::bigint FROM event_months").fetchone()
    assert row is not None, "a sum is always answered"
    return time.monotonic(), row[0]


def _cut(base_url: str, number: int) -> None:
    answer = httpx2.patch(
        f"{base_url}/v1/integrations/{INTEGRATION_ID}/retention",
        params={"organization_id": ORGANIZATION_ID, "project_id": PROJECT_ID},
        headers={"authorization": f"Bearer {AUDIENCE_CREDENTIAL}", "x-svc-operation-id": f"aud_{number:022d}"},
        json={"retention_days": (_CUTS - number) * _CUT_DAYS - 1},
        timeout=60,
    )
    if answer.status_code != httpx2.codes.OK or answer.json()["deleted_events"] != _CUT_EVENTS:
        raise RuntimeError(f"the cut answered {answer.status_code}: {answer.text}")


def _store_aged(database: Measured) -> None:
    """Store a million events for each deletion, over ten days each, before the days that are kept in the end."""
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        for day in range(_CUT_DAYS * (_CUTS + 1) - 1, _CUT_DAYS - 1, -1):
            values = {"count": _CUT_EVENTS // _CUT_DAYS, "days": day}
            connection.execute(
                "INSERT INTO events SELECT (random() * 9e18)::bigint, 1, current_date - %(days)s,"
                " (random() * 999)::int + 1, n %% 86400000, n %% 9, 516 FROM generate_series(1, %(count)s) n",
                values,
            )
            connection.execute(
                "INSERT INTO event_ids SELECT 1, gen_random_uuid(), gen_random_uuid(), current_date - %(days)s"
                " FROM generate_series(1, %(count)s)",
                values,
            )
            connection.execute(
                "INSERT INTO spent_proofs SELECT 1, gen_random_uuid(), current_date - %(days)s"
                " FROM generate_series(1, %(count)s)",
                values,
            )
        for table in _TABLES:
            connection.execute(f"VACUUM ANALYZE {table}".encode())
        connection.execute("CHECKPOINT")
