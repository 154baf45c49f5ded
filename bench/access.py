"""What a request costs Core beside its own work: authentication, and the audit chain."""

import contextlib
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Final

import httpx2
import psycopg

from bench import seed, unchained, wrk
from bench.figures import Figure, ratio_of_rounds
from bench.issuer import CLIENT_ID, issuer
from bench.rounds import in_turns, pace, processor_ms
from bench.server import CONSTANT
from bench.service import OPERATOR_TOKEN, Seeded, Service, core, seeded
from bench.wrk import Demand, against
from soundmark.embedded.postgres import RunningCluster

_WRITERS: Final = 16
_LIST_CONNECTIONS: Final = 16
_PAIRS: Final = 2_000
_CONSTANT_BYTES: Final = 700  # About as many as a resolution has.


def access(cluster: RunningCluster) -> list[Figure]:
    """Measure the cost of authentication: the same list of 50 Codes with each kind of credential and with none.

    The token is compared with the operator token, by Core's processor time per request while the process is kept busy.
    The API key is compared with a Core that takes every caller for that key, by the median time of requests that
    alternate between the two, PostgreSQL's share included.
    """
    database, key = seeded(cluster, 5_000), "xak_" + "b" * 43
    seed.seed_callers(database.everything, key)
    path = [f"/v1/codes?organization_id={seed.ORGANIZATION_ID}&limit=50"]
    with issuer() as provider, contextlib.ExitStack() as stack:
        people = {"SOUNDMARK_OIDC_ISSUER": provider.url, "SOUNDMARK_OIDC_CLIENT_ID": CLIENT_ID}
        local, signed_in, open_to_all = (
            stack.enter_context(core(database, more=more)) for more in ({}, people, {"BENCH_OPEN": "1"})
        )
        by_operator = (local, Demand(path, _LIST_CONNECTIONS, f"Bearer {OPERATOR_TOKEN}"))
        by_person = (signed_in, Demand(path, _LIST_CONNECTIONS, f"Bearer {provider.token(seed.PERSON)}"))
        constant = (local, Demand([f"{CONSTANT}{_CONSTANT_BYTES}"], _LIST_CONNECTIONS))
        for service, demand in (by_operator, by_person, constant):
            wrk.run(service.base_url, demand, seconds=pace.warm_s)
        operators_ms, tokens_ms, constants_ms = [], [], []
        for number in range(pace.rounds):
            operators_ms.append(processor_ms(*by_operator, number))
            tokens_ms.append(processor_ms(*by_person, number))
            constants_ms.append(processor_ms(*constant, number))
        nones_ms, keys_ms = _alternate((open_to_all, local), path[0], f"Bearer {key}")
    return [
        Figure(
            "List of 50 Codes: processor time of Core",
            f"{', '.join(f'{each:.2f}' for each in operators_ms)} ms",
            f"constant answer: {median(constants_ms) * 1e3:.0f} µs",
            median(operators_ms),
            "at most",
            1.2,
            " ms",
        ),
        Figure(
            "List of 50 Codes with an access token, keys cached: cost",
            f"{median(tokens_ms):.2f} ms of processor time",
            f"operator token: {median(operators_ms):.2f} ms",
            ratio_of_rounds(tokens_ms, operators_ms),
            "at most",
            1.6,
        ),
        Figure(
            "The same with an API key: time added",
            f"p50 {median(keys_ms):.2f} ms",
            f"no credential judged: p50 {median(nones_ms):.2f} ms",
            median(key_ms - none_ms for key_ms, none_ms in zip(keys_ms, nones_ms, strict=True)),
            "at most",
            0.3,
            " ms",
        ),
    ]


def _alternate(services: Sequence[Service], path: str, authorization: str) -> list[list[float]]:
    """Return how long each of many requests took at each service, in ms: what disturbs one service disturbs the other.

    The first tenth is left out, in which caches fill.
    """
    times_ms: list[list[float]] = [[] for _ in services]
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(httpx2.Client(base_url=service.base_url)) for service in services]
        pairs = list(zip(clients, times_ms, strict=True))
        for _ in range(_PAIRS):
            pairs.reverse()
            for client, times in pairs:
                began_s = time.perf_counter()
                client.get(path, headers={"Authorization": authorization}).raise_for_status()
                times.append((time.perf_counter() - began_s) * 1e3)
    return [times[_PAIRS // 10 :] for times in times_ms]


def audit(cluster: RunningCluster) -> list[Figure]:
    """Measure the audit chain: 16 writers of one organisation issue Codes as fast as possible, with it and without."""
    chained, plain = seeded(cluster, 1_000), seeded(cluster, 1_001)
    body = json.dumps(
        {
            "organization_id": seed.ORGANIZATION_ID,
            "project_id": seed.PROJECT_ID,
            "issuer": "Bench",
            "expires_at": "2999-01-01T00:00:00Z",
            "intent": seed.INTENT,
        }
    )
    demand = Demand(["/v1/codes"], _WRITERS, f"Bearer {OPERATOR_TOKEN}", [body])
    ages_s: list[float] = []
    with core(chained) as service, core(plain, more={unchained.SETTING: "1"}) as reference:
        for one in (service, reference):
            wrk.run(one.base_url, demand, seconds=pace.warm_s)
        references, loads = in_turns(
            [(reference, demand), (service, demand)], meanwhile=lambda: ages_s.append(_oldest_unsealed_s(chained))
        )
        oldest_s = max(ages_s)
        _until_all_sealed(chained)
        query = {"organization_id": seed.ORGANIZATION_ID}
        headers = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
        address = f"{service.base_url}/v1/audit-log/verification"
        found = httpx2.get(address, params=query, headers=headers, timeout=60).json()
    if not found["verified"]:
        raise RuntimeError(f"the chain is broken: {found}")
    return [
        against("Writing with the audit chain, 16 writers", loads, references, "the same without the chain", 0.95),
        Figure(
            "Oldest entry without its seal under this load",
            f"{', '.join(f'{age_s:.2f}' for age_s in ages_s)} s; then {found['entries']:,} entries verified",
            "",
            oldest_s,
            "at most",
            1,
            " s",
        ),
    ]


def _oldest_unsealed_s(database: Seeded) -> float:
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        row = connection.execute("SELECT min(created_at) FROM audit_unsealed").fetchone()
    oldest_at = row[0] if row is not None else None
    return 0.0 if oldest_at is None else (datetime.now(UTC) - oldest_at).total_seconds()


def _until_all_sealed(database: Seeded) -> None:
    deadline_s = time.monotonic() + pace.warm_s
    while time.monotonic() < deadline_s:
        if _oldest_unsealed_s(database) == 0:
            return
        time.sleep(0.05)
    raise TimeoutError("entries were not sealed in time")
