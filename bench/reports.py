"""Benchmarks of reports."""

import time
from statistics import median
from typing import Final

import httpx2
import psycopg

from bench.figures import Figure
from bench.ingestion import AUDIENCE_CREDENTIAL, audience
from bench.measuring import (
    CODES_COUNT,
    DAYS_COUNT,
    INTEGRATION_ID,
    ORGANIZATION_ID,
    PROJECT_ID,
    Measured,
    measured,
)
from bench.service import Service
from soundmark.embedded.postgres import RunningCluster

_ROUNDS: Final = 5
_TOKEN_EVENTS: Final = 2.5  # For each token on its day: 1 to 4 Codes.
_RECEIVERS, _COUNTRIES, _CAMPAIGNS = 9, 40, 20
_HEADERS: Final = {"authorization": f"Bearer {AUDIENCE_CREDENTIAL}"}
_TENANT: Final = {"organization_id": ORGANIZATION_ID, "project_id": PROJECT_ID}


def reports(cluster: RunningCluster) -> list[Figure]:
    """Measure whole reports of 30 days with every dimension, over HTTP, of one and of ten million events.

    Tokens are heard 2.5 times on their day and on no other, as the SDK makes them; and then again with tokens that
    recur every day, as a receiver that breaks the rules would make them.
    """
    figures = []
    for count, name, target_s in ((1_000_000, "1,000,000", 1.0), (10_000_000, "10,000,000", 8.0)):
        for is_rotating in (True, False):
            what = "tokens of a day" if is_rotating else "tokens that come back every day"
            database_name = f"reports_{count}_{int(is_rotating)}"
            database = _reported(cluster, database_name, count, is_rotating=is_rotating)
            with audience(database) as service:
                times = [_report_s(service, count) for _ in range(_ROUNDS + 1)][1:]
                resident_mib = service.resident_mib()
            figures.append(
                Figure(
                    f"Report of {name} events, {what}",
                    f"{', '.join(f'{one:.2f}' for one in times)} s",
                    f"{resident_mib:.0f} MiB resident",
                    median(times),
                    "at most",
                    target_s,
                    " s",
                )
            )
            with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {database_name} WITH (FORCE)".encode())
    return figures


def _report_s(service: Service, count: int) -> float:
    began_s = time.perf_counter()
    answer = httpx2.get(
        f"{service.base_url}/v1/reports/{INTEGRATION_ID}", params=_TENANT, headers=_HEADERS, timeout=120
    )
    taken_s = time.perf_counter() - began_s
    report = answer.raise_for_status().json()
    assert report["events"] == count, report["events"]
    assert len(report["by_day"]) == DAYS_COUNT
    assert len(report["by_xr_code"]) == CODES_COUNT
    return taken_s


def _reported(cluster: RunningCluster, name: str, count: int, *, is_rotating: bool) -> Measured:
    """Make a database with `count` events of 30 days, stored day after day as they would have arrived."""
    database = measured(cluster, name, 0)
    tokens = int(count / DAYS_COUNT / _TOKEN_EVENTS)
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        connection.execute(
            "UPDATE measured_codes SET campaign_id = 'cmp_' || lpad((number %% %s)::text, 22, '0')"
            " WHERE number %% 10 <> 0",
            (_CAMPAIGNS,),
        )
        left = count
        for day in range(DAYS_COUNT):
            values = {
                "days": DAYS_COUNT - day,  # Up to yesterday: none of it is in the future.
                # More tokens than needed; the limit makes the number exact.
                "tokens": tokens * 2,
                "seed": day + 1 if is_rotating else 0,
                "codes": CODES_COUNT,
                "receivers": _RECEIVERS,
                "countries": _COUNTRIES,
                "limit": count // DAYS_COUNT if day < DAYS_COUNT - 1 else left,
            }
            left -= connection.execute(_INSERT, values).rowcount
        for table in ("events", "measured_codes"):
            connection.execute(f"VACUUM ANALYZE {table}".encode())
        connection.execute("CHECKPOINT")
    return database


# The Codes of a token are spread over all Codes, and no token has the same one twice on a day.
_INSERT: Final = """
    INSERT INTO events (token, integration, day, code, occurred_ms, receiver, country)
    SELECT hashint8extended(n, %(seed)s), 1, current_date - %(days)s,
           1 + (abs(hashint8extended(n, 7) %% 1000000007) + k * 37) %% %(codes)s,
           abs(hashint8extended(n, k)) %% 86400000, abs(hashint8extended(n, 9)) %% %(receivers)s,
           CASE WHEN n %% 17 = 0 THEN NULL ELSE abs(hashint8extended(n, 11)) %% %(countries)s END
      FROM generate_series(1, %(tokens)s) AS n, generate_series(1, 1 + n %% 4) AS k
     LIMIT %(limit)s
"""
