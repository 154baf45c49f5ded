"""The cost of issuing: batches, single Codes of many organisations and of one, an emergency stop, lists and bundles."""

import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from statistics import median
from typing import Any, Final

import httpx2
import psycopg

from bench import bare_issuance, seed, wrk
from bench.figures import Figure, rates, ratio_of_rounds
from bench.service import OPERATOR_TOKEN, Seeded, Service, audio, core, key_of, process, seeded, worker_environ
from bench.wrk import Demand, Load
from soundmark.core.domain.codes.address import address_of
from soundmark.core.domain.codes.code import sign_code
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text.ids import mint

_ROUNDS: Final = 5
_ROUND_S: Final = 4.0
_BATCH: Final = 100
_ORGANIZATIONS: Final = 16
_STOPPED: Final = 100_000
_STOP_S: Final = 10.0
_PUBLISHED_MAX_S: Final = 120.0
_CALM_S: Final = 2.0
_LISTED: Final = 1_000_000
_PAGE: Final = 100
_PAGES: Final = 1_000
_AUTHORIZATION: Final = f"Bearer {OPERATOR_TOKEN}"


def issuing(cluster: RunningCluster) -> list[Figure]:
    """Measure batches against the bare statements, and single issuances against PostgreSQL's own benchmark."""
    database = seeded(cluster, 1_000)
    seed.seed_organizations(database.everything, _ORGANIZATIONS)
    bench_database = _pgbench_database(cluster)
    batch = Demand(["/v1/codes/batch"], 1, _AUTHORIZATION, [seed.wanted_code(seed.ORGANIZATION_ID, count=_BATCH)])
    own = [seed.wanted_code(seed.organization_id_of(number)) for number in range(_ORGANIZATIONS)]
    many = Demand(["/v1/codes"] * _ORGANIZATIONS, _ORGANIZATIONS, _AUTHORIZATION, own, is_in_order=True)
    alone = Demand(["/v1/codes"], _ORGANIZATIONS, _AUTHORIZATION, own[:1])
    names = ("batch", "bare", "many", "16", "statements", "alone", "1")
    measured: dict[str, list[float]] = {name: [] for name in names}
    with core(database) as service, core(database, processes=2) as two:
        for demand in (batch, many, alone):
            wrk.run(service.base_url, demand, seconds=2)
        wrk.run(two.base_url, many, seconds=2)
        for _ in range(_ROUNDS):
            measured["bare"].append(_bare_codes_per_s(database))
            measured["batch"].append(_BATCH * _load(service, batch).requests_per_s)
            measured["16"].append(_commits_per_s(cluster, bench_database, _ORGANIZATIONS))
            measured["statements"].append(_issuances_per_s(cluster, database))
            measured["many"].append(_load(two, many).requests_per_s)
            measured["1"].append(_commits_per_s(cluster, bench_database, 1))
            measured["alone"].append(_load(service, alone).requests_per_s)
    of = measured
    return [
        rates("Codes in batches of 100", of["batch"], "signing and two inserts", of["bare"], 0.4),
        rates(
            "Single Codes of 16 organisations, two Core processes",
            of["many"],
            "pgbench simple-update, 16 clients",
            of["16"],
            0.35,
        ),
        rates(
            "Single Codes of 16 organisations; their bare statements",
            of["many"],
            "the same statements by pgbench, 16 clients",
            of["statements"],
            0.6,
        ),
        rates("Single Codes of one organisation", of["alone"], "pgbench simple-update, 1 client", of["1"], 0.5),
    ]


def issuance_demand() -> Demand:
    """Return single issuances of one organisation, on as many connections as in `issuing`."""
    return Demand(["/v1/codes"], _ORGANIZATIONS, _AUTHORIZATION, [seed.wanted_code(seed.ORGANIZATION_ID)])


def stopping(cluster: RunningCluster) -> list[Figure]:
    """Measure the stop of a campaign with 100,000 active Codes while another organisation issues."""
    database = seeded(cluster, _STOPPED)
    seed.seed_organizations(database.everything, 1)
    demand = Demand(["/v1/codes"], 4, _AUTHORIZATION, [seed.wanted_code(seed.organization_id_of(0))])
    stops_s: list[float] = []
    shares: list[float] = []
    key = key_of(database)
    with core(database) as service, ThreadPoolExecutor(1) as other:
        for number in range(1, 4):
            numbers = range(number * _STOPPED, (number + 1) * _STOPPED)
            campaign_id = seed.seed_campaign(database.everything, key, numbers)
            issuing = other.submit(wrk.run, service.base_url, demand, seconds=_STOP_S)
            time.sleep(_CALM_S / 2)
            with _issued(database) as calm:
                time.sleep(_CALM_S)
            begun_s = time.monotonic()
            with _issued(database) as meanwhile:
                answer = _post(service, f"/v1/campaigns/{campaign_id}/stop", organization_id=seed.ORGANIZATION_ID)
            stops_s.append(time.monotonic() - begun_s)
            issuing.result()
            if answer["revoked_count"] != _STOPPED:
                raise RuntimeError(f"something else was stopped: {answer}")
            shares.append(meanwhile[0] / calm[0])
    return [
        Figure(
            "Stopping a campaign with 100,000 active Codes",
            f"{', '.join(f'{seconds:.2f}' for seconds in stops_s)} s",
            "",
            median(stops_s),
            "at most",
            3,
            " s",
        ),
        Figure(
            "Another organisation's issuance meanwhile",
            f"{', '.join(f'{share:.2f}' for share in shares)} of its rate before",
            "its rate before",
            median(shares),
            "at least",
            0.8,
        ),
    ]


def logged_stop(cluster: RunningCluster) -> list[Figure]:
    """Measure how long after its answer all revocations of a stop are in a published checkpoint."""
    database = seeded(cluster, _STOPPED)
    key = key_of(database)
    environ = worker_environ(database) | {"SOUNDMARK_LOG_LEVEL": "warning"}
    behind_s: list[float] = []
    with core(database) as service, process([sys.executable, "-m", "soundmark", "work", "core"], environ):
        for number in range(1, 4):
            numbers = range(number * _STOPPED, (number + 1) * _STOPPED)
            campaign_id = seed.seed_campaign(database.everything, key, numbers)
            wanted = _leaves_count(service) + _STOPPED
            _post(service, f"/v1/campaigns/{campaign_id}/stop", organization_id=seed.ORGANIZATION_ID)
            begun_s = time.monotonic()
            while _leaves_count(service) < wanted:
                if time.monotonic() - begun_s > _PUBLISHED_MAX_S:
                    raise TimeoutError("the worker does not publish the revocations")
                time.sleep(0.1)
            behind_s.append(time.monotonic() - begun_s)
    return [
        Figure(
            "All revocations of a stop of 100,000 Codes are published",
            f"{', '.join(f'{seconds:.2f}' for seconds in behind_s)} s after the answer",
            "",
            median(behind_s),
            "at most",
            5,
            " s",
        )
    ]


def _leaves_count(service: Service) -> int:
    """Return the size of the published tree."""
    return int(httpx2.get(service.base_url + "/v1/log/checkpoint", timeout=60).text.splitlines()[1])


def listing(cluster: RunningCluster) -> list[Figure]:
    """Measure the first page of a million Codes, and the thousandth."""
    database = seeded(cluster, _LISTED)
    with core(database) as service:
        query = f"organization_id={seed.ORGANIZATION_ID}&limit={_PAGE}"
        first = last = f"/v1/codes?{query}"
        headers = {"Authorization": _AUTHORIZATION}
        with httpx2.Client(base_url=service.base_url, headers=headers) as client:
            for _ in range(_PAGES - 1):
                last = f"/v1/codes?{query}&cursor={client.get(last).json()['next_cursor']}"
        times = {
            path: [_load(service, Demand([path], 1, _AUTHORIZATION)).p50_ms for _ in range(3)] for path in (first, last)
        }
    return [
        Figure(
            "Page 1,000 of a list of 1,000,000 Codes",
            f"p50 {median(times[last]):.1f} ms",
            f"page 1: p50 {median(times[first]):.1f} ms",
            ratio_of_rounds(times[last], times[first]),
            "at most",
            1.5,
        )
    ]


def bundles(cluster: RunningCluster) -> list[Figure]:
    """Measure 100 WAVs as one ZIP: Core's memory, and the longest time without a response."""
    database = seeded(cluster, 1_000)
    ids = [seed.xr_id_of(number) for number in range(100)]
    added_mib: list[float] = []
    waits_s: list[float] = []
    with audio() as audio_url, core(database, audio_url=audio_url) as service:
        query = {"organization_id": seed.ORGANIZATION_ID, "project_id": seed.PROJECT_ID}
        for _ in range(_ROUNDS):
            before_mib = service.resident_mib()
            with _watched(service.resident_mib) as seen:
                begun_s = time.monotonic()
                with httpx2.stream(
                    "POST",
                    f"{service.base_url}/v1/codes/audio-bundle",
                    params=query,
                    json={"xr_ids": ids, "protocol": 3},
                    headers={"Authorization": _AUTHORIZATION},
                    timeout=60,
                ) as answer:
                    answer.raise_for_status()
                    chunks = answer.iter_bytes()
                    size = len(next(chunks))
                    waits_s.append(time.monotonic() - begun_s)
                    size += sum(map(len, chunks))
            if size < 100 * 300_000:
                raise RuntimeError(f"a bundle of 100 WAVs has {size} bytes")
            added_mib.append(max(seen) - before_mib)
    return [
        Figure(
            "A bundle of 100 WAVs: memory that Core takes more",
            f"{', '.join(f'{mib:.0f}' for mib in added_mib)} MiB",
            "",
            max(added_mib),
            "at most",
            100 / 1.048576,
            " MiB",
        ),
        Figure(
            "A bundle of 100 WAVs: until its first byte",
            f"{', '.join(f'{wait_s:.2f}' for wait_s in waits_s)} s",
            "",
            median(waits_s),
            "at most",
            1,
            " s",
        ),
    ]


def _load(service: Service, demand: Demand) -> Load:
    return wrk.run(service.base_url, demand, seconds=_ROUND_S)


def _post(service: Service, path: str, **query: str) -> Any:
    headers = {"Authorization": _AUTHORIZATION}
    answer = httpx2.post(service.base_url + path, params=query, headers=headers, timeout=60)
    answer.raise_for_status()
    return answer.json()


def _bare_codes_per_s(database: Seeded) -> float:
    """Return the rate of bare issuing: sign 100 Codes and insert their rows with two statements in one transaction."""
    key, entropy = key_of(database), SystemEntropy()
    facts = seed.facts_of(key, datetime.now(UTC))
    count, end_s = 0, time.monotonic() + _ROUND_S
    begun_s = time.monotonic()
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        while time.monotonic() < end_s:
            _insert_batch(connection, facts, key, entropy)
            count += _BATCH
    return count / (time.monotonic() - begun_s)


def _insert_batch(connection: psycopg.Connection[Any], facts: Any, key: SigningKey, entropy: SystemEntropy) -> None:
    head = facts.head()
    codes = [
        sign_code(facts, key, xr_id=mint(entropy, "xr_"), broadcast_token=mint(entropy, "brd_", 16), head=head)
        for _ in range(_BATCH)
    ]
    with connection.transaction():
        connection.execute(
            "INSERT INTO broadcasts (token, payload, signature, organization_id)"
            " SELECT *, %s FROM unnest(%s::text[], %s::bytea[], %s::bytea[])",
            [
                facts.organization_id,
                [code.broadcast_token for code in codes],
                [code.payload for code in codes],
                [code.signature for code in codes],
            ],
        )
        connection.execute(
            "INSERT INTO codes (organization_id, project_id, issuer, issued_at, expires_at, key_id, address,"
            " xr_id, broadcast_token) SELECT %s, %s, %s, %s, %s, %s, %s, * FROM unnest(%s::text[], %s::text[])",
            [
                facts.organization_id,
                facts.project_id,
                facts.issuer,
                facts.issued_at,
                facts.expires_at,
                facts.key_id,
                address_of(seed.RESOURCE),
                [code.xr_id for code in codes],
                [code.broadcast_token for code in codes],
            ],
        )


def _pgbench_database(cluster: RunningCluster) -> str:
    """Return the URL of a new database that PostgreSQL's own benchmark has filled."""
    cluster.create_role_and_database("pgbench")
    url = cluster.superuser_url_of("pgbench").reveal()
    _pgbench(cluster, "-i", "-q", "-s", "10", url)
    return url


def _commits_per_s(cluster: RunningCluster, url: str, clients: int) -> float:
    """Return the transactions per second of pgbench's simple-update."""
    return _rate_of(cluster, ["-N"], url, clients)


def _issuances_per_s(cluster: RunningCluster, database: Seeded) -> float:
    """Return the rate at which pgbench sends the statements of single issuances of 16 organisations."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(bare_issuance.script_of(database, _ORGANIZATIONS))
        script.flush()
        return _rate_of(cluster, ["-f", script.name], database.url.reveal(), _ORGANIZATIONS)


def _rate_of(cluster: RunningCluster, options: Sequence[str], url: str, clients: int) -> float:
    more = ["-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(int(_ROUND_S))]
    found = re.search(r"tps = ([0-9.]+)", _pgbench(cluster, *options, *more, url))
    if found is None:
        raise RuntimeError("pgbench does not say what it measured")
    return float(found[1])


def _pgbench(cluster: RunningCluster, *arguments: str) -> str:
    command = [str(cluster.cluster.programs / "pgbench"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@contextmanager
def _issued(database: Seeded) -> Iterator[list[float]]:
    """Yield a list that gets the Codes per second that the first further organisation issued during the block."""
    statement = "SELECT COALESCE(sum(issued_count), 0) FROM code_usage_days WHERE organization_id = %s"
    per_s: list[float] = []
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:

        def count() -> int:
            row = connection.execute(statement, [seed.organization_id_of(0)]).fetchone()
            assert row is not None, "a sum is always answered"
            return int(row[0])

        before, begun_s = count(), time.monotonic()
        yield per_s
        per_s.append((count() - before) / (time.monotonic() - begun_s))


@contextmanager
def _watched(read: Callable[[], float]) -> Iterator[list[float]]:
    """Yield the results of `read` during the block, every 10 ms."""
    seen, stop = [read()], threading.Event()

    def watch() -> None:
        while not stop.wait(0.01):
            seen.append(read())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
