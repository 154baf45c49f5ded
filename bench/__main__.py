"""`make bench`: measure, compare with the targets, print the table, and keep it in `bench/RESULTS.md`."""

import argparse
import contextlib
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Final

import httpx2
import psycopg
from rich.console import Console

from bench import seed, unchained, wrk
from bench.console import console
from bench.deployment import idle, up
from bench.exports import exports
from bench.figures import Figure, keep, ratio_of_rounds, show
from bench.ingestion import ingestion, ingestion_growth
from bench.issuer import CLIENT_ID, issuer
from bench.issuing import bundles, issuing, listing, logged_stop, stopping
from bench.leaving import leaving
from bench.offline_packs import offline_packs
from bench.outbound import outbound
from bench.receiver import listening, receiver
from bench.refused import refused_events
from bench.rendering import ggwave_renderer, rendering
from bench.reports import reports
from bench.retention import retention_cuts
from bench.server import CONSTANT
from bench.service import OPERATOR_TOKEN, PROOF, Seeded, Service, audio, core, seeded
from bench.soak import hostile_forms, soak
from bench.tracing import tracing
from bench.transparency import logged_issuing, suspending, transparency
from bench.webhooks import webhooks
from bench.wrk import Demand, Load, against
from soundmark.embedded.postgres import RunningCluster
from soundmark.embedded.throwaway import throwaway_cluster

_WRITERS: Final = 16
_SOUND_CONNECTIONS: Final = 4
_LIST_CONNECTIONS: Final = 16
_say: Final = Console(stderr=True, highlight=False).print


@dataclass(slots=True)
class _Pace:
    """How often and for how long the parts of this module measure."""

    rounds: int = 5
    round_s: float = 4.0
    warm_s: float = 4.0


_pace: Final = _Pace()


def resolution(cluster: RunningCluster) -> list[Figure]:
    """Measure resolution: one process, 100,000 Codes, the stadium and both references, in turns."""
    database = seeded(cluster, 100_000)
    with core(database) as service, core(database, is_plain=True) as plain:
        size = len(httpx2.get(service.base_url + database.paths(1)[0], headers=PROOF).content)
        constant, everything = Demand([f"{CONSTANT}{size}"]), Demand(database.paths())
        stadium, naive = Demand(database.paths(1)), Demand(database.paths(1000, "/naive/"))
        _once_each(service, database)
        loads = _rounds([(service, demand) for demand in (constant, everything, stadium, naive)] + [(plain, constant)])
        spent_us, constant_us = (
            [_processor_ms(service, demand, number) * 1e3 for number in range(_pace.rounds)]
            for demand in (everything, constant)
        )
    constants, resolved, crowd, naives, plain_constants = loads
    p50, p99 = median(load.p50_ms for load in resolved), median(load.p99_ms for load in resolved)
    return [
        against("Resolve with envelope, 100,000 Codes", resolved, constants, "constant answer of the same size", 0.33),
        against("The same", resolved, plain_constants, "constant answer of uvicorn as it comes", 0.33),
        Figure(
            "Resolve: processor time of Core",
            f"{', '.join(f'{each:.0f}' for each in spent_us)} µs",
            f"constant answer: {median(constant_us):.0f} µs",
            median(spent_us),
            "at most",
            45,
            " µs",
        ),
        against("Resolve against the naive route", resolved, naives, "naive route (bench/naive.py)", 5),
        Figure("Resolve: p99 over p50", f"p99 {p99:.1f} ms", f"p50 {p50:.1f} ms", p99 / p50, "at most", 2),
        against("One token heard by everybody", crowd, constants, "constant answer of the same size", 0.5),
    ]


def growth(cluster: RunningCluster) -> list[Figure]:
    """Measure a million Codes against ten thousand, each in its own process and database, in turns; and memory.

    In processor time, because a load generator that draws from a million paths is slower itself.
    """
    return _growth(cluster, "1,000,000", seeded(cluster, 1_000_000))


def great_growth(cluster: RunningCluster) -> list[Figure]:
    """Measure ten million Codes against ten thousand, of which two hundred thousand at random places are requested."""
    large = seeded(cluster, 200_000)
    seed.seed_unrequested(large.everything, 9_800_000)
    seed.settle(large.everything)
    return _growth(cluster, "10,000,000", large)[:1]


def _growth(cluster: RunningCluster, count: str, large: Seeded) -> list[Figure]:
    small = seeded(cluster, 10_000)
    with core(small) as of_small, core(large) as of_large:
        _once_each(of_small, small)
        first_load = _once_each(of_large, large)
        demands = [(of_small, Demand(small.paths())), (of_large, Demand(large.paths()))]
        rounds = [[_processor_ms(*each, number, cluster) for each in demands] for number in range(_pace.rounds)]
        smalls_ms, larges_ms = zip(*rounds, strict=True)
        resident_mib = of_large.resident_mib()
    return [
        Figure(
            f"Resolve, {count} Codes: answers for the processor time of Core and PostgreSQL",
            f"{median(larges_ms) * 1e3:.0f} µs each",
            f"10,000 Codes: {median(smalls_ms) * 1e3:.0f} µs each",
            ratio_of_rounds(smalls_ms, larges_ms),
            "at least",
            0.9,
        ),
        Figure(
            f"Core's resident memory, each of {count} Codes answered",
            f"{resident_mib:.0f} MiB; {first_load.requests_per_s:,.0f}/s for the first answers, each verified",
            "",
            resident_mib,
            "at most",
            150 / 1.048576,
            " MiB",
        ),
    ]


def processes(cluster: RunningCluster) -> list[Figure]:
    """Measure two processes against one, on the same cores as the load generator and PostgreSQL."""
    database = seeded(cluster, 50_000)
    with core(database) as one, core(database, processes=2) as two:
        for service in (one, two, two):
            _once_each(service, database)
        spread: list[int] = []
        ones, twos = _rounds(
            [(one, Demand(database.paths())), (two, Demand(database.paths()))],
            meanwhile=lambda: spread.append(min(two.connection_counts(two.port))),
        )
    return [
        against("Two Core processes", twos, ones, "one process", 1.4),
        Figure(
            "Connections of the process that has fewer",
            f"{', '.join(map(str, spread))} of {wrk.CONNECTIONS}",
            "",
            median(spread),
            "at least",
            wrk.CONNECTIONS / 4,
        ),
    ]


def sound(cluster: RunningCluster) -> list[Figure]:
    """Measure WAVs through Core's API against a bare loop over ggwave in one process."""
    database = seeded(cluster, 1_000)
    paths = [
        f"/v1/codes/{seed.xr_id_of(number)}/audio?organization_id={seed.ORGANIZATION_ID}" for number in range(1_000)
    ]
    demand = Demand(paths, _SOUND_CONNECTIONS, f"Bearer {OPERATOR_TOKEN}")
    bare_rates: list[float] = []
    loads: list[Load] = []
    with audio() as audio_url, core(database, audio_url=audio_url) as service:
        wrk.run(service.base_url, demand, seconds=_pace.warm_s)
        for number in range(_pace.rounds):
            bare_rates.append(_bare_renders_per_s())
            loads.append(wrk.run(service.base_url, demand, seconds=_pace.round_s, seed=number))
    rates = [load.requests_per_s for load in loads]
    return [
        Figure(
            "WAVs through Core",
            f"{median(rates):,.0f}/s",
            f"ggwave and WAV in a bare loop: {median(bare_rates):,.0f}/s",
            ratio_of_rounds(rates, bare_rates),
            "at least",
            0.7,
        )
    ]


def access(cluster: RunningCluster) -> list[Figure]:
    """Measure the cost of authentication: the same list of 50 Codes with each kind of credential and with none.

    The token is compared with the operator token, by Core's processor time per request while the process is kept busy.
    The API key is compared with a Core that takes every caller for that key, by the median time of successive
    requests on one connection, PostgreSQL's share included.
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
        by_nobody, by_key = ((service, Demand(path, 1, f"Bearer {key}")) for service in (open_to_all, local))
        for service, demand in (by_operator, by_person, by_nobody, by_key):
            wrk.run(service.base_url, demand, seconds=_pace.warm_s)
        operators_ms, tokens_ms = [], []
        for number in range(_pace.rounds):
            operators_ms.append(_processor_ms(*by_operator, number))
            tokens_ms.append(_processor_ms(*by_person, number))
        nones, keys = _rounds([by_nobody, by_key])
    added_ms = median(one.p50_ms - none.p50_ms for one, none in zip(keys, nones, strict=True))
    return [
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
            f"p50 {median(load.p50_ms for load in keys):.2f} ms",
            f"no credential judged: p50 {median(load.p50_ms for load in nones):.2f} ms",
            added_ms,
            "at most",
            0.3,
            " ms",
        ),
    ]


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
            wrk.run(one.base_url, demand, seconds=_pace.warm_s)
        references, loads = _rounds(
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


PARTS: Final[dict[str, Callable[[RunningCluster], list[Figure]]]] = {
    "resolution": resolution,
    "growth": growth,
    "great-growth": great_growth,
    "processes": processes,
    "rendering": rendering,
    "sound": sound,
    "access": access,
    "audit": audit,
    "issuing": issuing,
    "logged-issuing": logged_issuing,
    "suspending": suspending,
    "transparency": transparency,
    "tracing": tracing,
    "stopping": stopping,
    "logged-stop": logged_stop,
    "listing": listing,
    "bundles": bundles,
    "exports": exports,
    "ingestion": ingestion,
    "ingestion-growth": ingestion_growth,
    "refused-events": refused_events,
    "reports": reports,
    "retention": retention_cuts,
    "leaving": leaving,
    "webhooks": webhooks,
    "outbound": outbound,
    "console": console,
    "offline-packs": offline_packs,
    "receiver": receiver,
    "listening": listening,
    "soak": soak,
    "hostile-forms": hostile_forms,
    "up": up,
    "idle": idle,
}


SHORT: Final = ("resolution", "access", "audit", "listing", "up", "idle")


def _rounds(
    demands: Sequence[tuple[Service, Demand]], *, meanwhile: Callable[[], object] | None = None
) -> list[list[Load]]:
    """Return the loads of each demand, one per round; `meanwhile` runs during the last demand of a round."""
    loads: list[list[Load]] = [[] for _ in demands]
    for number in range(_pace.rounds):
        for place, (service, demand) in enumerate(demands):
            if meanwhile is not None and place == len(demands) - 1:
                loads[place].append(_watched(service, demand, number, meanwhile))
            else:
                loads[place].append(wrk.run(service.base_url, demand, seconds=_pace.round_s, seed=number))
    return loads


def _watched(service: Service, demand: Demand, number: int, meanwhile: Callable[[], object]) -> Load:
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(wrk.run, service.base_url, demand, seconds=_pace.round_s, seed=number)
        time.sleep(_pace.round_s / 2)
        meanwhile()
        return running.result()


def _processor_ms(service: Service, demand: Demand, number: int, cluster: RunningCluster | None = None) -> float:
    """Return the processor time that the service spends on one request, with PostgreSQL's if `cluster` is given."""
    before_s = service.processor_s(cluster)
    load = wrk.run(service.base_url, demand, seconds=_pace.round_s, seed=number)
    return (service.processor_s(cluster) - before_s) / load.requests * 1e3


def _once_each(service: Service, database: Seeded) -> Load:
    """Request every Code, so that the measurement is representative of a long-running process.

    Return the first of its loads: one is enough on a fast machine.
    """
    left = database.paths()
    loads: list[Load] = []
    while left:
        seconds = len(left) / loads[-1].requests_per_s if loads else database.count / 4_500
        demand = Demand(left, is_in_order=True)
        loads.append(wrk.run(service.base_url, demand, seconds=max(_pace.warm_s, seconds)))
        left = left[loads[-1].requests :]
    return loads[0]


def _oldest_unsealed_s(database: Seeded) -> float:
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        row = connection.execute("SELECT min(created_at) FROM audit_unsealed").fetchone()
    oldest_at = row[0] if row is not None else None
    return 0.0 if oldest_at is None else (datetime.now(UTC) - oldest_at).total_seconds()


def _until_all_sealed(database: Seeded) -> None:
    deadline_s = time.monotonic() + _pace.warm_s
    while time.monotonic() < deadline_s:
        if _oldest_unsealed_s(database) == 0:
            return
        time.sleep(0.05)
    raise TimeoutError("entries were not sealed in time")


def _bare_renders_per_s() -> float:
    frames = [f"XRC1:{seed.token_of(number)}" for number in range(1_000)]
    with ggwave_renderer() as render:
        began_s, count = time.perf_counter(), 0
        while (taken_s := time.perf_counter() - began_s) < _pace.round_s:
            render(frames[count % len(frames)], 4)
            count += 1
    return count / taken_s


def main() -> None:
    """Measure the named parts, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which parts to measure; all unless named")
    parser.add_argument("--short", action="store_true", help="measure a few parts shortly, and keep nothing")
    options = parser.parse_args()
    chosen = options.parts or list(SHORT if options.short else PARTS)
    if options.short:
        _pace.rounds, _pace.round_s, _pace.warm_s = 2, 2.0, 2.0
    with throwaway_cluster(is_durable=True) as cluster:
        for part in chosen:
            _say(f"measuring {part} ...")
            figures = PARTS[part](cluster)
            show(figures)
            if not options.short:
                keep(part, figures)


if __name__ == "__main__":
    main()
