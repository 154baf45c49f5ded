"""The cost of the transparency log: in issuing, of integrating a million entries, of a proof, and of an audit."""

import asyncio
import hashlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Any, Final

import httpx2
import psutil
import psycopg

from bench import seed, unlogged, unsuspended, wrk
from bench.figures import Figure, rates, ratio_of_rounds
from bench.service import OPERATOR_TOKEN, Seeded, Service, core, seeded, worker_environ
from bench.wrk import Demand
from soundmark import settings as declared
from soundmark.core.domain.log.tree import Edge, Tile, hash_leaf, plan_inclusion
from soundmark.core.features.log.integration.sequencing import integrate_some
from soundmark.core.worker import make_job_context
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.text import base64url

_ROUNDS: Final = 20  # Short and many: a slow moment of the machine then hits both sides.
_ROUND_S: Final = 1.5
_BATCH: Final = 100
_WRITERS: Final = 16
_LEAVES: Final = 1_000_000
_PROVEN: Final = 10_000_000
_PROOFS: Final = 500
_SUSPENDED: Final = 1_000
_AUTHORIZATION: Final = f"Bearer {OPERATOR_TOKEN}"


def logged_issuing(cluster: RunningCluster) -> list[Figure]:
    """Measure batches and single Codes of one organisation, with the log and without, in turns."""
    with_log, without = seeded(cluster, 1_000), seeded(cluster, 1_001)
    demands = {
        "Batches of 100": Demand(["/v1/codes/batch"], 1, _AUTHORIZATION, [seed.wanted_code(count=_BATCH)]),
        "Single Codes": Demand(["/v1/codes"], _WRITERS, _AUTHORIZATION, [seed.wanted_code()]),
    }
    per_s: dict[tuple[str, bool], list[float]] = {(name, logged): [] for name in demands for logged in (True, False)}
    cost_ms: dict[tuple[str, bool], list[float]] = {place: [] for place in per_s}
    with core(with_log) as service, core(without, more={unlogged.SETTING: "1"}) as reference:
        for one in (service, reference):
            for demand in demands.values():
                wrk.run(one.base_url, demand, seconds=2)
        for number in range(_ROUNDS):
            # Each goes first as often as the other: the machine slows down and recovers.
            sides = [(True, service), (False, reference)]
            for name, demand in demands.items():
                for logged, one in sides if number % 2 else sides[::-1]:
                    before_s = one.processor_s(cluster)
                    load = wrk.run(one.base_url, demand, seconds=_ROUND_S, seed=number)
                    per_s[name, logged].append(load.requests_per_s)
                    cost_ms[name, logged].append((one.processor_s(cluster) - before_s) / load.requests * 1e3)
    figures = []
    for name in demands:
        figures.append(rates(f"{name} with the log", per_s[name, True], "without", per_s[name, False], 0.95))
        with_ms, without_ms = (median(cost_ms[name, logged]) for logged in (True, False))
        figures.append(
            Figure(
                f"{name} with the log: processor time of Core and PostgreSQL",
                f"{with_ms:.2f} ms a request",
                f"without: {without_ms:.2f} ms",
                ratio_of_rounds(cost_ms[name, True], cost_ms[name, False]),
                "at most",
                1 / 0.95,
            )
        )
    return figures


def suspending(cluster: RunningCluster) -> list[Figure]:
    """Measure resolution beside a thousand suspended organisations, and a Core that knows of none, in turns."""
    database = seeded(cluster, 100_000)
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        # In one statement, since triggers compare the two tables after each.
        connection.execute(
            "WITH suspended AS ("
            "INSERT INTO organizations (id, name, created_at, suspended_at, suspension_reason)"
            " SELECT 'org_' || lpad(n::text, 22, '0'), 'Suspended', now(), now(), 'Bench'"
            " FROM generate_series(1, %s) AS n RETURNING id"
            ") INSERT INTO suspended_organizations (organization_id) SELECT id FROM suspended",
            [_SUSPENDED],
        )
        connection.execute("ANALYZE suspended_organizations")
    demand = Demand(database.paths())
    per_s: dict[bool, list[float]] = {True: [], False: []}
    with core(database) as service, core(database, more={unsuspended.SETTING: "1"}) as reference:
        for one in (service, reference):
            wrk.run(one.base_url, demand, seconds=4)
        for number in range(_ROUNDS):
            sides = [(True, service), (False, reference)]
            for knows, one in sides if number % 2 else sides[::-1]:
                per_s[knows].append(wrk.run(one.base_url, demand, seconds=_ROUND_S, seed=number).requests_per_s)
    return [
        rates(
            "Resolution beside 1,000 suspended organisations",
            per_s[True],
            "look-ups that know of none",
            per_s[False],
            0.98,
        )
    ]


def transparency(cluster: RunningCluster) -> list[Figure]:
    """Measure the integration of a million entries, the size of the tiles, a proof, and an auditor's verification."""
    database = seeded(cluster, 1_000)
    with core(database) as service:
        _queue(database, _LEAVES)
        taken_s, added_mib, count = asyncio.run(_integrate(database))
        tiles_bytes = _value(database, "SELECT pg_total_relation_size('log_tiles')")
        vkey = httpx2.get(f"{service.base_url}/v1/log").json()["vkeys"][0]
        command = [sys.executable, "-m", "soundmark", "log", "verify", "--base-url", service.base_url, "--vkey", vkey]
        begun_s = time.monotonic()
        before_s = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, env=dict(os.environ), capture_output=True)
        after_s = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor_s = after_s.ru_utime + after_s.ru_stime - before_s.ru_utime - before_s.ru_stime
        verified_s = time.monotonic() - begun_s
        asked_ms = _ask_for_proofs(cluster, service, database)
    proof_ms = median(_prove())
    return [
        Figure(
            "Entries that the worker integrates",
            f"{count:,} in {taken_s:.0f} s", "", count / taken_s, "at least", 5_000, "/s",
        ),
        Figure("The worker's memory meanwhile", f"{added_mib:.0f} MiB more", "", added_mib, "at most", 64, " MiB"),
        Figure(
            "Hash tiles", f"{tiles_bytes / 1e6:.0f} MB", "", tiles_bytes / count, "at most", 70, " bytes a leaf"
        ),
        Figure(
            "A proof in a log of 10,000,000", f"{proof_ms:.2f} ms of processor time", "", proof_ms, "at most", 5, " ms"
        ),
        Figure(
            "A proof in a log of 1,000,000, from request to answer",
            f"{asked_ms:.2f} ms of processor time of Core and PostgreSQL",
            "", asked_ms, "at most", 5, " ms",
        ),
        Figure(
            "`soundmark log verify`, a log of 1,000,000",
            f"{processor_s:.0f} s of processor time, {verified_s:.0f} s beside Core on the same cores",
            "", processor_s, "at most", 60, " s",
        ),
    ]  # fmt: skip


async def _integrate(database: Seeded) -> tuple[float, float, int]:
    """Integrate everything that waits; return the seconds, the mebibytes that the process grew, and the entries."""
    environ = {name: value for name, value in worker_environ(database).items() if name.startswith("SOUNDMARK_")}
    ctx = make_job_context(declared.read(declared.CoreJobsSettings, environ))
    await ctx.db.open()
    count = (await integrate_some(ctx)).added_count
    before_bytes = most_bytes = psutil.Process().memory_info().rss
    begun_s, first, has_more = time.monotonic(), count, True
    while has_more:
        done = await integrate_some(ctx)
        count, has_more = count + done.added_count, done.has_more
        most_bytes = max(most_bytes, psutil.Process().memory_info().rss)
    taken_s = time.monotonic() - begun_s
    await ctx.witnesses.aclose()
    await ctx.db.close()
    return taken_s, (most_bytes - before_bytes) / 2**20, count - first


def _queue(database: Seeded, count: int) -> None:
    """Queue the commitments of Codes that were issued in batches of 100."""
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        connection.execute(
            "INSERT INTO log_queue (kind, count, content)"
            " SELECT 'code.issued', count(*),"
            " string_agg(sha256(('c' || n)::bytea) || sha256(('a' || n)::bytea), ''::bytea)"
            f" FROM generate_series(0, {count - 1}) AS n GROUP BY n / {_BATCH}".encode()
        )
        connection.execute("ANALYZE log_queue")


def _prove() -> Iterator[float]:
    """Yield the milliseconds of processor time of proofs: which tiles, and their hashes, without the database."""
    edge, tiles = Edge(0, ()), dict[Tile, bytes]()
    leaves = [hash_leaf(number.to_bytes(4, "big")) for number in range(65_536)]
    while edge.size + len(leaves) <= _PROVEN:
        edge, changed = edge.grow(leaves)
        tiles |= changed
    for number in range(_PROOFS):
        index = int.from_bytes(hashlib.sha256(number.to_bytes(4, "big")).digest()[:8], "big") % edge.size
        begun_s = time.process_time()
        plan = plan_inclusion(index, edge.size)
        plan.read({tile: tiles[tile] for tile in plan.tiles()})
        yield (time.process_time() - begun_s) * 1e3


def _ask_for_proofs(cluster: RunningCluster, service: Service, database: Seeded) -> float:
    """Return the milliseconds of processor time of Core and PostgreSQL that a proof takes, mean of many entries."""
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        rows = connection.execute("SELECT digest FROM log_leaves TABLESAMPLE SYSTEM (5) LIMIT %s", [_PROOFS]).fetchall()
    with httpx2.Client(base_url=service.base_url) as client:
        paths = [f"/v1/log/proofs/{base64url.encode(digest)}" for (digest,) in rows]
        client.get(paths[0]).raise_for_status()
        before_s = service.processor_s(cluster)
        for path in paths:
            client.get(path).raise_for_status()
        return (service.processor_s(cluster) - before_s) / len(paths) * 1e3


def _value(database: Seeded, statement: str) -> Any:
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        row = connection.execute(statement.encode()).fetchone()
    assert row is not None, "one row"
    return row[0]
