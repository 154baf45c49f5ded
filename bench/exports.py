"""Benchmarks of exports: their rate, their memory, and what they leave to others."""

import contextlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import psycopg
from psycopg.rows import dict_row

from bench import seed, wrk
from bench.figures import Figure, rates
from bench.ingestion import audience
from bench.measuring import measured
from bench.service import OPERATOR_TOKEN, Seeded, Service, core, seeded
from bench.wrk import Demand
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.text import base64url

_COUNT: Final = int(os.environ.get("BENCH_EXPORTED_CODES", "1000000"))
_RESOLVED: Final = min(_COUNT, 10_000)
_ROUNDS: Final = 3
_ROUND_S: Final = 8.0
_WARM_S: Final = 4.0
_SAMPLE_S: Final = 0.02
_TIMEOUT_S: Final = 3600.0
_SETTINGS: Final = {"SOUNDMARK_EXPORT_BYTES_MAX": str(64 * 1024**3)}
_EXPORT: Final = f"/v1/organizations/{seed.ORGANIZATION_ID}/export"
_OWNER: Final = {"authorization": f"Bearer {OPERATOR_TOKEN}"}


@dataclass(frozen=True, slots=True)
class _Download:
    """One whole archive, received over the loopback interface, and Core's most memory meanwhile."""

    taken_s: float
    size_mib: float
    peak_mib: float


def exports(cluster: RunningCluster) -> list[Figure]:
    """Measure archives of an organisation with a million Codes, and resolution beside them.

    The reference is a loop that reads the same rows with one query, in the same order, and writes them as JSON. It runs
    in turns with the export, on a machine that is idle otherwise. Then receivers resolve as fast as they can, in turns
    with exports beside them and without. BENCH_EXPORTED_CODES sets another number of Codes.
    """
    database = seeded(cluster, _COUNT)
    demand = Demand(database.paths(_RESOLVED))
    loops_s, downloads, alones, besides = list[float](), list[_Download](), list[float](), list[float]()
    with audience(measured(cluster, "exports", 0)) as measuring:
        more = {**_SETTINGS, "SOUNDMARK_AUDIENCE_URL": measuring.base_url}
        with core(database, more=more) as service:
            wrk.run(service.base_url, demand, seconds=_WARM_S)
            idle_mib = service.resident_mib()
            for _ in range(_ROUNDS):
                loops_s.append(_loop_s(database))
                downloads.append(_download(service))
            for number in range(_ROUNDS):
                alones.append(wrk.run(service.base_url, demand, seconds=_ROUND_S, seed=number).requests_per_s)
                with _exporting(service):
                    besides.append(wrk.run(service.base_url, demand, seconds=_ROUND_S, seed=number).requests_per_s)
    peak_mib = max(download.peak_mib for download in downloads)
    return [
        rates(
            f"Export of {_COUNT:,} Codes, received whole",
            [_COUNT / download.taken_s for download in downloads],
            "a loop that writes the same rows as JSON",
            [_COUNT / loop_s for loop_s in loops_s],
            0.5,
        ),
        Figure(
            "Core's memory above idle during it",
            f"at most {peak_mib:.0f} MiB; an archive has {downloads[0].size_mib:,.0f} MiB",
            f"idle: {idle_mib:.0f} MiB",
            peak_mib - idle_mib,
            "at most",
            100 / 1.048576,
            " MiB",
        ),
        rates("Resolution by others beside an export", besides, "without it", alones, 0.8),
    ]


def _loop_s(database: Seeded) -> float:
    """Return how long it takes to write every Code as JSON, and nothing else."""
    began_s = time.perf_counter()
    with (
        psycopg.connect(database.everything.reveal(), row_factory=dict_row) as connection,
        connection.cursor("loop") as cursor,
        tempfile.TemporaryFile("w") as file,
    ):
        cursor.itersize = 2000
        cursor.execute(
            "SELECT c.*, b.payload, b.signature FROM codes c JOIN broadcasts b ON b.token = c.broadcast_token"
            " WHERE c.organization_id = %s ORDER BY c.issued_at, c.xr_id",
            (seed.ORGANIZATION_ID,),
        )
        for row in cursor:
            file.write(json.dumps(_record(row), default=str))
            file.write("\n")
    return time.perf_counter() - began_s


def _record(row: dict[str, Any]) -> dict[str, Any]:
    signed = json.loads(row.pop("payload"))
    signed["signature"] = base64url.encode(row.pop("signature"))
    return {**row, "intent": signed["intent"], "signed_code": signed}


def _download(service: Service) -> _Download:
    """Receive one archive."""
    peaks, is_done = [service.resident_mib()], threading.Event()

    def sample() -> None:
        while not is_done.wait(_SAMPLE_S):
            peaks.append(service.resident_mib())

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        began_s = time.perf_counter()
        size_bytes = _receive(service)
        taken_s = time.perf_counter() - began_s
    finally:
        is_done.set()
        sampler.join()
    return _Download(taken_s, size_bytes / 2**20, max(peaks))


def _receive(service: Service) -> int:
    size_bytes = 0
    with httpx2.stream("GET", service.base_url + _EXPORT, headers=_OWNER, timeout=_TIMEOUT_S) as answer:
        answer.raise_for_status()
        for part in answer.iter_raw():
            size_bytes += len(part)
    return size_bytes


@contextlib.contextmanager
def _exporting(service: Service) -> Iterator[None]:
    """Export one time after the other, in a thread, until the block ends; the last archive is finished."""
    is_done = threading.Event()
    failures: list[BaseException] = []

    def export() -> None:
        try:
            while not is_done.is_set():
                _receive(service)
        except BaseException as failure:  # noqa: BLE001 - raised again below, in the thread that measures
            failures.append(failure)

    exporter = threading.Thread(target=export)
    exporter.start()
    try:
        yield
    finally:
        is_done.set()
        exporter.join()
    if failures:
        raise failures[0]
