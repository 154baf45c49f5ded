"""Components that `soundmark serve` runs, each as a process, and how those end that refuse to serve."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.processes.command_server import find_forked_soundmark
from support.processes.up_process import SOUNDMARK, clean_environ, status_of, until

from soundmark.kit.http.server.sockets import reserve_port

AUDIO = {"SOUNDMARK_AUDIO_CREDENTIAL": "a-credential-of-audio"}


@dataclass(frozen=True, slots=True)
class Serving:
    process: subprocess.Popen[bytes]
    url: str
    metrics_url: str

    def is_ready(self) -> bool:
        assert self.process.poll() is None
        return status_of(f"{self.url}/readyz") == 200


@contextlib.contextmanager
def serving(
    component: str,
    environ: Mapping[str, str],
    *arguments: str,
    is_ready: Callable[[Serving], bool] = Serving.is_ready,
    log: Path | None = None,
) -> Iterator[Serving]:
    """Run a component; in a fork, unless it has processes of its own, which a test looks for."""
    command = SOUNDMARK if arguments else (find_forked_soundmark(),)
    # Held while the component serves, as `up` does, so that nobody else gets the ports.
    with reserve_port("127.0.0.1", 0) as public, reserve_port("127.0.0.1", 0) as metrics:
        port, metrics_port = public.getsockname()[1], metrics.getsockname()[1]
        with (
            (log or Path(os.devnull)).open("wb") as errors,
            subprocess.Popen(
                [*command, "serve", component, "--port", str(port), *arguments],
                env=clean_environ({**environ, "SOUNDMARK_METRICS_PORT": str(metrics_port)}),
                stderr=errors,
            ) as process,
        ):
            try:
                found = Serving(process, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{metrics_port}/metrics")
                until(lambda: is_ready(found), 30)
                yield found
            finally:
                process.terminate()
                process.wait(30)


def ended(component: str, *arguments: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Return how a component that refuses to serve ends."""
    return subprocess.run(
        [find_forked_soundmark(), "serve", component, *arguments],
        check=False,
        env=clean_environ(environ),
        capture_output=True,
        text=True,
        timeout=60,
    )
