"""Benchmarks of outbound webhooks: what endpoints cost those who act, and how fast the messages arrive."""

import asyncio
import contextlib
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Any, Final

import httpx2
import psutil
import psycopg

from bench import seed, wrk
from bench.figures import Figure, rates, ratio_of_rounds
from bench.service import (
    OPERATOR_TOKEN,
    Seeded,
    Service,
    core,
    free_port,
    key_of,
    process,
    seeded,
    until,
    worker_environ,
)
from bench.wrk import Demand
from soundmark.core.features.webhooks.delivery.lanes import OF_ENDPOINT_MAX
from soundmark.embedded.postgres import RunningCluster

_ROUNDS: Final = 5
_ROUND_S: Final = 4.0
_BATCH: Final = 100
_ENDPOINTS: Final = 10
_STOPPED: Final = 100_000
_STOPS: Final = 2
_BARE_S: Final = 10.0
_SINGLES: Final = 60
_DELIVERED_MAX_S: Final = 600.0
_HEADERS: Final = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
_ALLOWED: Final = {"SOUNDMARK_WEBHOOK_ALLOW_LOOPBACK": "true"}
_MIB_MAX: Final = 20.0


def outbound(cluster: RunningCluster) -> list[Figure]:
    """Measure batches and a stop with and without endpoints, then the delivery of what the stop did."""
    database = seeded(cluster, 1_000)
    with _consumer() as consumer_url, core(database, more=_ALLOWED) as service:
        figures = _batches(database, service, consumer_url)
        _forget(database)
        figures += _stops(database, service, consumer_url)
        with _worker(database) as worker:
            figures += _deliveries(worker, consumer_url)
            figures.append(_latency(service, consumer_url))
    return figures


def _batches(database: Seeded, service: Service, consumer_url: str) -> list[Figure]:
    """Issue batches in an organisation with endpoints and in one without, while no worker delivers."""
    seed.seed_organizations(database.everything, 1)
    for _ in range(_ENDPOINTS):
        _make_endpoint(service, seed.ORGANIZATION_ID, consumer_url)
    demands = {
        name: Demand(["/v1/codes/batch"], 1, _HEADERS["Authorization"], [json.dumps(_wanted(tenant, count=_BATCH))])
        for name, tenant in (("with", seed.ORGANIZATION_ID), ("without", seed.organization_id_of(0)))
    }
    per_s: dict[str, list[float]] = {"with": [], "without": []}
    for is_counted in (False, *[True] * _ROUNDS):
        for name, demand in demands.items():
            load = wrk.run(service.base_url, demand, seconds=_ROUND_S)
            if is_counted:
                per_s[name].append(_BATCH * load.requests_per_s)
    name = f"Codes in batches of 100 with {_ENDPOINTS} webhook endpoints"
    return [rates(name, per_s["with"], "without an endpoint", per_s["without"], 0.7)]


def _stops(database: Seeded, service: Service, consumer_url: str) -> list[Figure]:
    """Stop campaigns of 100,000 Codes, in turns without an endpoint and with one; the last leaves its messages."""
    key = key_of(database)
    took_s: dict[bool, list[float]] = {False: [], True: []}
    for number in range(2 * _STOPS):
        is_listening = number % 2 == 1
        campaign_id = seed.seed_campaign(
            database.everything, key, range((number + 1) * _STOPPED, (number + 2) * _STOPPED)
        )
        _forget(database)
        if is_listening:
            _make_endpoint(service, seed.ORGANIZATION_ID, consumer_url)
            _forget_acts(database)
        begun_s = time.monotonic()
        _post(service, f"/v1/campaigns/{campaign_id}/stop", organization_id=seed.ORGANIZATION_ID)
        took_s[is_listening].append(time.monotonic() - begun_s)
    return [
        Figure(
            "Stopping a campaign with 100,000 active Codes with a webhook endpoint",
            f"{', '.join(f'{seconds:.2f}' for seconds in took_s[True])} s",
            f"without an endpoint: {', '.join(f'{seconds:.2f}' for seconds in took_s[False])} s",
            ratio_of_rounds(took_s[True], took_s[False]),
            "at most",
            1.5,
        )
    ]


def _deliveries(worker: psutil.Process, consumer_url: str) -> list[Figure]:
    """Wait for the messages of the stop, then send as many bytes from a bare loop."""
    _wait_for(consumer_url, _STOPPED // 10)
    early_mib = worker.memory_info().rss / 2**20
    _wait_for(consumer_url, _STOPPED)
    seen = _seen(consumer_url)
    per_s = seen["count"] / (seen["last_at"] - seen["first_at"])
    grown_mib = worker.memory_info().rss / 2**20 - early_mib
    bare_per_s = asyncio.run(_post_bare(consumer_url))
    measured = f"{per_s:,.0f}/s"
    return [
        Figure("Messages of a stop of 100,000 Codes, one endpoint, one worker", measured, "", per_s, "at least", 500),
        Figure(
            "The same",
            measured,
            f"bare httpx2 loop, {OF_ENDPOINT_MAX} at a time: {bare_per_s:,.0f}/s",
            per_s / bare_per_s,
            "at least",
            0.4,
        ),
        Figure(
            "The worker's memory, from the 10,000th to the last of them",
            f"{early_mib:.0f} MiB at first",
            "",
            grown_mib,
            "at most",
            _MIB_MAX,
            " MiB",
        ),
    ]


def _latency(service: Service, consumer_url: str) -> Figure:
    """Issue single Codes while nothing else happens, and note when the message of each arrives."""
    took_s: list[float] = []
    body = _wanted(seed.ORGANIZATION_ID)
    for _ in range(_SINGLES):
        time.sleep(0.3 + random.random() * 0.2)  # noqa: S311 - so that the worker's pauses begin at any time
        before = _seen(consumer_url)["count"]
        httpx2.post(f"{service.base_url}/v1/codes", json=body, headers=_HEADERS).raise_for_status()
        committed_at = time.time()
        until(partial(_has_arrived, consumer_url, before + 1))
        took_s.append(max(0.0, _seen(consumer_url)["last_at"] - committed_at))
    return Figure(
        "From a commit to the arrival of its message, idle",
        f"p50 {median(took_s) * 1000:.0f} ms, longest {max(took_s) * 1000:.0f} ms",
        "",
        median(took_s),
        "at most",
        0.15,
        " s",
    )


async def _post_bare(url: str) -> float:
    """Return the rate of POSTs of a message's size from a loop that only posts."""
    body, headers = b"x" * 330, {"content-type": "application/json", "webhook-signature": "v1," + "x" * 44}
    begun_s, count = time.monotonic(), 0

    async def work(client: httpx2.AsyncClient) -> None:
        nonlocal count
        while time.monotonic() - begun_s < _BARE_S:
            (await client.post(url, content=body, headers=headers)).raise_for_status()
            count += 1

    async with httpx2.AsyncClient(limits=httpx2.Limits(max_connections=OF_ENDPOINT_MAX), timeout=30) as client:
        await asyncio.gather(*(work(client) for _ in range(OF_ENDPOINT_MAX)))
    return count / (time.monotonic() - begun_s)


@contextlib.contextmanager
def _consumer() -> Iterator[str]:
    with free_port(is_shared=False) as port:
        url = f"http://127.0.0.1:{port}"
        with process([sys.executable, "-m", "bench.webhook_consumer", str(port)], dict(os.environ)):
            until(lambda: _seen(url)["count"] == 0)
            yield url


@contextlib.contextmanager
def _worker(database: Seeded) -> Iterator[psutil.Process]:
    environ = worker_environ(database) | _ALLOWED | {"SOUNDMARK_LOG_LEVEL": "warning"}
    with process([sys.executable, "-m", "soundmark", "work", "core"], environ) as running:
        yield running


def _seen(consumer_url: str) -> Any:
    return httpx2.get(consumer_url).json()


def _wait_for(consumer_url: str, count: int) -> None:
    deadline_s = time.monotonic() + _DELIVERED_MAX_S
    while not _has_arrived(consumer_url, count):
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"fewer than {count:,} messages arrived")
        time.sleep(0.2)


def _has_arrived(consumer_url: str, count: int) -> bool:
    return bool(_seen(consumer_url)["count"] >= count)


def _make_endpoint(service: Service, organization_id: str, url: str) -> None:
    body = {"organization_id": organization_id, "project_id": None, "url": url, "event_types": None}
    answer = httpx2.post(f"{service.base_url}/v1/webhook-endpoints", json=body, headers=_HEADERS)
    answer.raise_for_status()


def _post(service: Service, path: str, **query: str) -> None:
    httpx2.post(service.base_url + path, params=query, headers=_HEADERS, timeout=60).raise_for_status()


def _wanted(organization_id: str, **more: Any) -> dict[str, Any]:
    return {
        "organization_id": organization_id,
        "project_id": seed.PROJECT_ID,
        "issuer": "Bench",
        "expires_at": "2999-01-01T00:00:00Z",
        "intent": seed.INTENT,
        **more,
    }


def _forget(database: Seeded) -> None:
    """Delete every endpoint and what waits for one."""
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        connection.execute("TRUNCATE webhook_endpoints, webhook_acts, webhook_events, webhook_deliveries")


def _forget_acts(database: Seeded) -> None:
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        connection.execute("TRUNCATE webhook_acts")
