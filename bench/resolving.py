"""Resolution: of many Codes, of one, by several processes, and beside the naive route."""

from statistics import median

import httpx2

from bench import seed, wrk
from bench.figures import Figure, ratio_of_rounds
from bench.rounds import in_turns, once_each, pace, processor_ms
from bench.server import CONSTANT
from bench.service import PROOF, Seeded, core, seeded
from bench.wrk import Demand, against
from soundmark.embedded.postgres import RunningCluster


def resolution(cluster: RunningCluster) -> list[Figure]:
    """Measure resolution: one process, 100,000 Codes, the stadium and both references, in turns."""
    database = seeded(cluster, 100_000)
    with core(database) as service, core(database, is_plain=True) as plain:
        size = len(httpx2.get(service.base_url + database.paths(1)[0], headers=PROOF).content)
        constant, everything = Demand([f"{CONSTANT}{size}"]), Demand(database.paths())
        stadium, naive = Demand(database.paths(1)), Demand(database.paths(1000, "/naive/"))
        once_each(service, database)
        loads = in_turns([(service, demand) for demand in (constant, everything, stadium, naive)] + [(plain, constant)])
        spent_us, constant_us = (
            [processor_ms(service, demand, number) * 1e3 for number in range(pace.rounds)]
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
        once_each(of_small, small)
        first_load = once_each(of_large, large)
        demands = [(of_small, Demand(small.paths())), (of_large, Demand(large.paths()))]
        rounds = [[processor_ms(*each, number, cluster) for each in demands] for number in range(pace.rounds)]
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
            once_each(service, database)
        spread: list[int] = []
        ones, twos = in_turns(
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
