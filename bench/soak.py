"""Hostile peers beside 64 honest receivers: how long the receivers wait, and the cost.

The peers are 2,000 connections of eight kinds, or 10,000 forms at 50 a second.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import psutil

from bench.figures import Figure
from bench.service import OPERATOR_TOKEN, Service, core, seeded
from soundmark.embedded.postgres import RunningCluster

_CODES: Final = 5_000
_WARM_S: Final = 10.0
_ALONE_S: Final = 40.0
_BEGINNING_S: Final = 15.0
_BESIDE_S: Final = 60.0
_RELEASED_MAX_S: Final = 60.0
_FORMS_COUNT: Final = 10_000
_FORMS_PER_S: Final = 50
_LAG_MAX_S: Final = 10.0  # Forms that come later than that were fewer than 50 a second.
_FILES_TOLERANCE: Final = 8


def soak(cluster: RunningCluster) -> list[Figure]:
    """Measure honest waiting times without and beside the hostile peers, Core's memory, and how soon all is released.

    The hostile processes run niced: they stand for other machines, and must not win by taking our processors.
    """
    database = seeded(cluster, _CODES)
    with core(database) as service, tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "paths")
        paths.write_text("\n".join(database.paths()), encoding="utf-8")
        _honest(service, paths, _WARM_S)
        alone = _honest(service, paths, _ALONE_S)
        process = service.processes[0]
        files_before, memory_before = process.num_fds(), process.memory_info().rss
        hostile = _peers("hostile", service, _BEGINNING_S + _BESIDE_S + 5, OPERATOR_TOKEN)
        time.sleep(_BEGINNING_S)
        honest = _peers("honest", service, _BESIDE_S, str(paths))
        memory_peak, files_peak = memory_before, files_before
        while honest.poll() is None:
            memory_peak = max(memory_peak, process.memory_info().rss)
            files_peak = max(files_peak, process.num_fds())
            time.sleep(0.2)
        beside = _result(honest)
        kinds = _result(hostile)
        released_s = _released_s(process, service.port, files_before)
    sys.stderr.write(json.dumps(kinds, indent=1) + "\n")
    failures = alone["failures"] + beside["failures"]
    unended = [
        name
        for name, count in kinds.items()
        if not count.get("ended by the server", 0) + count.get("reset by the server", 0)
    ]
    if failures or unended:
        raise RuntimeError(f"{failures} honest requests failed; never ended: {unended}")
    begun = sum(count["begun"] for count in kinds.values())
    return [
        Figure(
            "Honest p99 beside 2,000 hostile connections",
            f"p99 {beside['p99_ms']:.1f} ms, p50 {beside['p50_ms']:.1f} ms, {beside['count']:,} resolutions",
            f"without them: p99 {alone['p99_ms']:.1f} ms, p50 {alone['p50_ms']:.1f} ms",
            beside["p99_ms"] / alone["p99_ms"],
            "at most",
            3,
        ),
        Figure(
            "Core's memory added by them",
            f"{begun:,} hostile connections begun, {files_peak - files_before:,} open at once",
            "",
            (memory_peak - memory_before) / 1e6,
            "at most",
            100,
            " MB",
        ),
        Figure("Every connection released after they went", "", "", released_s, "at most", _RELEASED_MAX_S, " s"),
    ]


def hostile_forms(cluster: RunningCluster) -> list[Figure]:
    """Measure honest waiting times without and beside hostile forms at the local provider's webhook."""
    database = seeded(cluster, _CODES)
    with core(database) as service, tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "paths")
        paths.write_text("\n".join(database.paths()), encoding="utf-8")
        _honest(service, paths, _WARM_S)
        alone = _honest(service, paths, _ALONE_S)
        seconds = _FORMS_COUNT / _FORMS_PER_S
        began_s = time.monotonic()
        hostile = _peers("forms", service, seconds, str(_FORMS_COUNT))
        beside = _honest(service, paths, seconds)
        statuses = _result(hostile)
        lag_s = time.monotonic() - began_s - seconds
    sys.stderr.write(json.dumps(statuses) + "\n")
    failures = alone["failures"] + beside["failures"]
    if failures or sum(statuses.values()) != _FORMS_COUNT or lag_s > _LAG_MAX_S:
        raise RuntimeError(f"{failures} honest requests failed; forms: {statuses}, {lag_s:.0f} s late")
    return [
        Figure(
            f"Honest p99 beside {_FORMS_COUNT:,} hostile forms at {_FORMS_PER_S}/s",
            f"p99 {beside['p99_ms']:.1f} ms, p50 {beside['p50_ms']:.1f} ms, {beside['count']:,} resolutions",
            f"without them: p99 {alone['p99_ms']:.1f} ms, p50 {alone['p50_ms']:.1f} ms",
            beside["p99_ms"] / alone["p99_ms"],
            "at most",
            3,
        )
    ]


def _honest(service: Service, paths: Path, seconds: float) -> dict[str, Any]:
    return _result(_peers("honest", service, seconds, str(paths)))


def _peers(role: str, service: Service, seconds: float, last: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "bench.hostile", role, str(service.port), str(seconds), last]
    nice = (lambda: os.nice(10)) if role != "honest" else None
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=nice)  # noqa: PLW1509 - one thread here


def _result(process: "subprocess.Popen[str]") -> dict[str, Any]:
    output, _ = process.communicate(timeout=600)
    if process.returncode:
        raise RuntimeError(f"the peers ended with status {process.returncode}")
    result: dict[str, Any] = json.loads(output)
    return result


def _released_s(process: psutil.Process, port: int, files_before: int) -> float:
    """Return how long Core keeps a file descriptor, or the kernel a connection, of a peer that is gone."""
    began_s = time.monotonic()
    while (waited_s := time.monotonic() - began_s) < 2 * _RELEASED_MAX_S:
        kept = [
            each
            for each in psutil.net_connections("tcp4")
            if each.laddr.port == port and each.status not in {"LISTEN", "TIME_WAIT"} and each.raddr
        ]
        if not kept and process.num_fds() <= files_before + _FILES_TOLERANCE:
            return waited_s
        time.sleep(0.1)
    return waited_s
