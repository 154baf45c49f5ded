"""Several processes of one component on one port, of which each is started again when it ends."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Iterator

from soundmark.embedded.signals import until_signalled
from soundmark.embedded.supervision import Program, Supervisor, soundmark
from soundmark.kit.clock import SystemClock
from soundmark.kit.serve import Listen


async def run_workers(component: str, listen: Listen, workers_count: int) -> None:
    """Keep `workers_count` processes of `component` running until SIGINT or SIGTERM.

    The kernel spreads connections over them. Their metrics lie in a folder of their own, where each can add up all.
    """
    argv = soundmark("serve", component, "--host", listen.host, "--port", str(listen.port), "--beside-others")
    supervisor = Supervisor(SystemClock())
    with until_signalled(), _metrics_environ() as environ:
        try:
            for number in range(1, workers_count + 1):
                supervisor.keep(Program(f"{component} {number}", argv, environ))
            await asyncio.get_running_loop().create_future()
        finally:
            await supervisor.stop(supervisor.names())


@contextlib.contextmanager
def _metrics_environ() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="soundmark-metrics-") as folder:
        yield {**os.environ, "PROMETHEUS_MULTIPROC_DIR": folder}
