"""Benchmarks of leaving: the deletion of a large project, and what others notice of it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import median
from typing import Final

import httpx2
import psycopg

from bench import seed, wrk
from bench.figures import Figure
from bench.ingestion import AUDIENCE_CREDENTIAL, audience
from bench.measuring import Measured, measured
from bench.service import OPERATOR_TOKEN, Seeded, Service, core, key_of, seeded
from bench.wrk import Demand, Load
from soundmark.embedded.postgres import RunningCluster

_CODES: Final = 1_000_000
_EVENTS: Final = 1_000_000
_OTHERS: Final = 10_000
_ROUND_S: Final = 4.0
_ROUNDS: Final = 3
_SAMPLED_EVERY_S: Final = 0.05
_DELETION_TIMEOUT_S: Final = 1800.0
_MIB_MAX: Final = 100 / 1.048576


def leaving(cluster: RunningCluster) -> list[Figure]:
    """Measure the deletion of a project with a million Codes and a million events."""
    database, events = _seed_codes(cluster), _seed_events(cluster)
    demand = Demand([f"/v1/resolve/{seed.token_of(number)}" for number in range(_CODES, _CODES + _OTHERS)])
    with audience(events) as measuring, core(database, more=_environ(measuring)) as service:
        wrk.run(service.base_url, demand, seconds=_ROUND_S)
        before = [wrk.run(service.base_url, demand, seconds=_ROUND_S, seed=number) for number in range(_ROUNDS)]
        idle_mib = service.resident_mib()
        watch = _Watch(database, service)
        with ThreadPoolExecutor(2) as pool:
            watching = pool.submit(watch.run)
            began_s = time.monotonic()
            deleting = pool.submit(_delete, service)
            besides: list[Load] = []
            while not deleting.done():
                besides.append(wrk.run(service.base_url, demand, seconds=_ROUND_S, seed=len(besides)))
            took_s = deleting.result() - began_s
            watch.is_over.set()
            watching.result()
    before_per_s = median(load.requests_per_s for load in before)
    # The last round may have ended after the deletion.
    besides_per_s = median(load.requests_per_s for load in besides[:-1] or besides)
    return [
        Figure(
            f"Resolution of others while {_CODES:,} Codes and {_EVENTS:,} events are deleted",
            f"{besides_per_s:,.0f}/s; the deletion took {took_s:.0f} s",
            f"just before: {before_per_s:,.0f}/s",
            besides_per_s / before_per_s,
            "at least",
            0.8,
        ),
        Figure("The longest transaction of that deletion", "", "", watch.longest_s, "at most", 5, " s"),
        Figure(
            "Core's memory above idle meanwhile",
            f"idle: {idle_mib:.0f} MiB",
            "",
            watch.resident_mib - idle_mib,
            "at most",
            _MIB_MAX,
            " MiB",
        ),
    ]


def _seed_codes(cluster: RunningCluster) -> Seeded:
    """Make a database with the Codes of the project, and some of another organisation."""
    database = seeded(cluster, _CODES)
    seed.seed_codes(database.everything, key_of(database), range(_CODES, _CODES + _OTHERS))
    seed.seed_organizations(database.everything, 1)
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        connection.execute(
            "UPDATE codes SET organization_id = %s WHERE xr_id >= %s",
            (seed.organization_id_of(0), seed.xr_id_of(_CODES)),
        )
    seed.settle(database.everything)
    return database


def _seed_events(cluster: RunningCluster) -> Measured:
    """Make a database of Audience with the events of the project."""
    events = measured(cluster, "leaving", _EVENTS)
    with psycopg.connect(events.everything.reveal(), autocommit=True) as connection:
        connection.execute(
            "UPDATE integrations SET organization_id = %s, project_id = %s", (seed.ORGANIZATION_ID, seed.PROJECT_ID)
        )
    return events


def _environ(measuring: Service) -> dict[str, str]:
    return {
        "SOUNDMARK_AUDIENCE_URL": measuring.base_url,
        "SOUNDMARK_AUDIENCE_CREDENTIAL": AUDIENCE_CREDENTIAL,
    }


def _delete(service: Service) -> float:
    """Delete the project; return when that was done."""
    answer = httpx2.request(
        "DELETE",
        f"{service.base_url}/v1/projects/{seed.PROJECT_ID}",
        params={"organization_id": seed.ORGANIZATION_ID},
        headers={"authorization": f"Bearer {OPERATOR_TOKEN}"},
        json={"confirmation": seed.PROJECT_ID},
        timeout=_DELETION_TIMEOUT_S,
    )
    done_s = time.monotonic()
    certificate = httpx2.get(service.base_url + answer.headers.get("location", "/")).json()
    if answer.status_code != httpx2.codes.NO_CONTENT or certificate["deleted"]["core"]["codes"] != _CODES:
        raise RuntimeError(f"the deletion answered {answer.status_code}: {answer.text} {certificate}")
    return done_s


@dataclass(slots=True)
class _Watch:
    """Watches the transactions of both databases, and the memory of Core, until `is_over`."""

    database: Seeded
    service: Service
    is_over: threading.Event = field(default_factory=threading.Event)
    longest_s: float = 0.0
    resident_mib: float = 0.0

    def run(self) -> None:
        """Watch."""
        with psycopg.connect(self.database.everything.reveal(), autocommit=True) as connection:
            while not self.is_over.wait(_SAMPLED_EVERY_S):
                row = connection.execute(
                    "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8"
                    "  FROM pg_stat_activity"
                    " WHERE application_name LIKE 'soundmark-%' AND state <> 'idle'"
                ).fetchone()
                assert row is not None, "a maximum is one row"
                self.longest_s = max(self.longest_s, row[0])
                self.resident_mib = max(self.resident_mib, self.service.resident_mib())
