"""Measuring `soundmark up` as a whole: how fast it starts again, and what it costs while nothing happens."""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final

import httpx2
import psutil
import psycopg

from bench.figures import Figure
from soundmark.embedded.postgres import RunningCluster

_STARTS: Final = 5
_READY_MAX_S: Final = 60.0
_SETTLED_S: Final = 15.0  # Caches are filled, and the first round of each loop is over.
_IDLE_S: Final = 120.0
_MINUTE_S: Final = 60.0


def up(_: RunningCluster) -> list[Figure]:
    """Measure the time from the command to ready on a data directory that was used before, and what that costs."""
    times_s, costs_s = [], []
    with _data_dir() as data_dir:
        with _running(data_dir):
            pass
        for _number in range(_STARTS):
            began_s = time.perf_counter()
            with _running(data_dir) as root:
                times_s.append(time.perf_counter() - began_s)
                costs_s.append(sum(_processor_s(root).values()))
    return [
        Figure("`soundmark up` ready again", _spell_out(times_s), "", median(times_s), "at most", 5, " s"),
        Figure("The same: processor time", _spell_out(costs_s), "", median(costs_s), "at most", 4.5, " s"),
    ]


def idle(_: RunningCluster) -> list[Figure]:
    """Measure all processes of a deployment to which nothing happens: processor time, transactions and memory."""
    with _data_dir() as data_dir, _running(data_dir) as root:
        time.sleep(_SETTLED_S)
        transactions, before_s = _count_transactions(root), _processor_s(root)
        time.sleep(_IDLE_S)
        after_s = _processor_s(root)
        ended_at_count = _count_transactions(root)
        shares_mib = _measure(root, lambda process: process.memory_full_info().pss / 2**20)
    spent_s = {name: after_s[name] - before_s.get(name, 0) for name in after_s}
    per_minute = sum(spent_s.values()) * _MINUTE_S / _IDLE_S
    most = sorted(spent_s, key=lambda name: -spent_s[name])[:3]
    details = ", ".join(f"{name.split(' ', 1)[1]} {spent_s[name] * _MINUTE_S / _IDLE_S * 1e3:.0f} ms" for name in most)
    return [
        Figure("An idle `up`: processor time a minute", details, "", per_minute, "at most", 0.6, " s"),
        Figure(
            "An idle `up`: transactions a second", "", "", (ended_at_count - transactions) / _IDLE_S, "at most", 5, "/s"
        ),
        Figure("An idle `up`: memory (PSS)", "", "", sum(shares_mib.values()), "at most", 400, " MiB"),
    ]


@contextlib.contextmanager
def _data_dir() -> Iterator[Path]:
    """Yield a folder that an ordinary user can reach: PostgreSQL does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="soundmark-bench-"))
    folder.chmod(0o755)
    try:
        yield folder / "data"
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def _running(data_dir: Path) -> Iterator[psutil.Process]:
    """Run `soundmark up`, and yield its first process once it is ready."""
    command = [sys.executable, "-m", "soundmark", "up", "--data-dir", str(data_dir), "--port", "0", "--serve-as-root"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_ready(data_dir, process.pid)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


def _wait_until_ready(data_dir: Path, pid: int) -> None:
    began_s = time.perf_counter()
    while time.perf_counter() - began_s < _READY_MAX_S:
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError, httpx2.ConnectError):
            where = json.loads((data_dir / "up.json").read_text())
            if where["pid"] == pid and httpx2.get(where["base_url"] + "/readyz").status_code == 200:
                return
        time.sleep(0.02)
    raise TimeoutError(f"`soundmark up` was not ready after {_READY_MAX_S} s")


def _processor_s(root: psutil.Process) -> dict[str, float]:
    """Return the processor time of each process of a deployment and of its ended children, by its id and command."""
    return _measure(root, lambda process: sum(process.cpu_times()[:4]))


def _measure(root: psutil.Process, look: Callable[[psutil.Process], float]) -> dict[str, float]:
    """Return a figure of each process of a deployment; some end at any time."""
    found = {}
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            words = process.cmdline()
            name = " ".join(words[4:6]) if words[3:4] == ["soundmark"] else Path(next(iter(words), "")).name[:40]
            found[f"{process.pid} {name}"] = look(process)
    return found


def _count_transactions(root: psutil.Process) -> int:
    """Return how many transactions PostgreSQL has ended in all databases."""
    name = "SOUNDMARK_CORE_DATABASE_URL"
    url = next(process.environ()[name] for process in root.children() if name in process.environ())
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database").fetchone()
    assert row is not None, "a sum is one row"
    return int(row[0])


def _spell_out(times_s: list[float]) -> str:
    return ", ".join(f"{time_s:.1f}" for time_s in times_s) + " s"
