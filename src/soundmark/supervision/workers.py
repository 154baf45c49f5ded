"""Several processes of one component on one port, each restarted when it ends."""

import asyncio
import contextlib
import functools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from soundmark.kit.clock import SystemClock
from soundmark.kit.http.server.serve import Listen
from soundmark.operating_system.signals import until_signalled
from soundmark.supervision.supervisor import Program, Supervisor, soundmark

_GRACE_S: Final = 15  # After it has drained; a process itself takes `serve.GRACE_S` at most.


async def run_workers(component: str, listen: Listen, workers_count: int, *, drain_s: int) -> None:
    """Keep `workers_count` processes of `component` running until SIGINT or SIGTERM.

    The kernel distributes connections among them. They write their metrics to one folder, so that each can report the
    sums.
    """
    argv = soundmark("serve", component, "--host", listen.host, "--port", str(listen.port), "--beside-others")
    supervisor = Supervisor(SystemClock())
    with until_signalled(), _metrics_environ() as environ:
        try:
            forget = functools.partial(forget_dead_processes, Path(environ["PROMETHEUS_MULTIPROC_DIR"]))
            for number in range(1, workers_count + 1):
                name = f"{component} {number}"
                supervisor.keep(Program(name, argv, environ, grace_s=drain_s + _GRACE_S, before_start=forget))
            await asyncio.get_running_loop().create_future()
        finally:
            await supervisor.stop(supervisor.names())


def forget_dead_processes(folder: Path) -> None:
    """Remove the live gauges of processes that have ended, and keep their counters."""
    for file in folder.glob("gauge_live*_*.db"):
        try:
            os.kill(int(file.stem.rpartition("_")[2]), 0)
        except OSError:
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def _metrics_environ() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="soundmark-metrics-") as folder:
        yield {**os.environ, "PROMETHEUS_MULTIPROC_DIR": folder}
