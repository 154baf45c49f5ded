"""Services to measure: a seeded database, and processes of Core on it."""

import asyncio
import base64
import contextlib
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2
import psutil

from bench import seed
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.http.server.sockets import reserve_port
from soundmark.kit.postgres.migrations import migrate

PROOF: Final = {"X-Svc-Resolution-Proof": "ed25519-v1"}
AUDIO_CREDENTIAL: Final = "audio-credential-of-the-benchmark"
OPERATOR_TOKEN: Final = "xop_" + "b" * 43
_MASTER_KEY: Final = bytes(range(32))
_START_S: Final = 30
_SEEDED_AT_ONCE: Final = 100_000
_number: Final = itertools.count()
_ROOT: Final = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Seeded:
    """A database with `count` Codes; `everything` is a role exempt from row-level security."""

    url: Secret
    everything: Secret
    count: int

    def paths(self, count: int | None = None, prefix: str = "/v1/resolve/") -> list[str]:
        """Return the paths that receivers of the first `count` Codes request."""
        return [prefix + seed.token_of(number) for number in range(self.count if count is None else count)]


def seeded(cluster: RunningCluster, count: int) -> Seeded:
    """Make a database with `count` genuine Codes."""
    name = f"codes_{count}_{next(_number)}"
    url = cluster.create_role_and_database(name)
    migrate(url, "soundmark.core")
    key = asyncio.run(seed.first_key(url, _MASTER_KEY))
    # COPY does not work under row-level security.
    everything = cluster.superuser_url_of(name)
    for begin in range(0, count, _SEEDED_AT_ONCE):
        seed.seed_codes(everything, key, range(begin, min(count, begin + _SEEDED_AT_ONCE)))
    seed.settle(everything)
    return Seeded(url, everything, count)


def key_of(database: Seeded) -> SigningKey:
    """Return the key that Core signs with on this database."""
    return asyncio.run(seed.first_key(database.url, _MASTER_KEY))


@dataclass(frozen=True, slots=True)
class Service:
    """Processes that answer at one address."""

    base_url: str
    processes: tuple[psutil.Process, ...]

    def resident_mib(self) -> float:
        """Return the memory of its first process."""
        rss: int = self.processes[0].memory_info().rss
        return rss / 2**20

    def processor_s(self, cluster: RunningCluster | None = None) -> float:
        """Return the processor time that its first process has spent, and those of PostgreSQL if `cluster` is given."""
        spent_s = 0.0
        for process in (self.processes[0], *(psutil.Process(cluster.process.pid).children() if cluster else ())):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                spent_s += times.user + times.system
        return spent_s

    def connection_counts(self, port: int) -> list[int]:
        """Return how many connections each process holds."""
        return [
            sum(
                1
                for connection in process.net_connections("tcp")
                if connection.status == psutil.CONN_ESTABLISHED and connection.laddr.port == port
            )
            for process in self.processes
        ]

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.base_url.rpartition(":")[2])


@contextlib.contextmanager
def core(
    database: Seeded,
    *,
    processes: int = 1,
    audio_url: str = "http://127.0.0.1:9",
    is_plain: bool = False,
    more: Mapping[str, str] | None = None,
) -> Iterator[Service]:
    """Run Core in `processes` processes on one port, each with the references beside it (bench/server.py).

    `more` is added to their environment.
    """
    environ = {
        **worker_environ(database),
        "SOUNDMARK_AUDIO_URL": audio_url,
        "SOUNDMARK_AUDIO_CREDENTIAL": AUDIO_CREDENTIAL,
        "SOUNDMARK_OPERATOR_TOKEN": OPERATOR_TOKEN,
        "SOUNDMARK_RESOLVE_RATE_LIMIT": "1000000000",
        **(more or {}),
    }
    with free_port(is_shared=not is_plain) as port:
        command = [sys.executable, "-m", "bench.server", str(port), *(["plain"] if is_plain else [])]
        with contextlib.ExitStack() as stack:
            started = tuple(stack.enter_context(process(command, environ)) for _ in range(processes))
            service = Service(f"http://127.0.0.1:{port}", started)
            until(lambda: httpx2.get(service.base_url + database.paths(1)[0], headers=PROOF).status_code == 200)
            yield service


def worker_environ(database: Seeded) -> dict[str, str]:
    """Return the environment of Core's worker on this database."""
    return {
        **os.environ,
        "SOUNDMARK_BASE_URL": "http://127.0.0.1",
        "SOUNDMARK_CORE_DATABASE_URL": database.url.reveal(),
        "SOUNDMARK_MASTER_KEY": base64.urlsafe_b64encode(_MASTER_KEY).decode().rstrip("="),
        "SOUNDMARK_AUDIENCE_URL": "http://127.0.0.1:9",
        "SOUNDMARK_AUDIENCE_CREDENTIAL": "audience-credential-of-the-benchmark",
    }


@contextlib.contextmanager
def audio() -> Iterator[str]:
    """Run the audio component and yield its address."""
    environ = {**os.environ, "SOUNDMARK_AUDIO_CREDENTIAL": AUDIO_CREDENTIAL, "SOUNDMARK_LOG_LEVEL": "warning"}
    with free_port() as port:
        command = [sys.executable, "-m", "soundmark", "serve", "audio", "--port", str(port), "--beside-others"]
        with process(command, environ):
            base_url = f"http://127.0.0.1:{port}"
            until(lambda: httpx2.get(base_url + "/readyz").status_code == 200)
            yield base_url


@contextlib.contextmanager
def free_port(*, is_shared: bool = True) -> Iterator[int]:
    """Reserve a free port, which several processes may share; or return one for a server that shares none."""
    with reserve_port("127.0.0.1", 0) as sock:
        port: int = sock.getsockname()[1]
        if not is_shared:
            sock.close()
        yield port


@contextlib.contextmanager
def process(command: list[str], environ: dict[str, str]) -> Iterator[psutil.Process]:
    process = subprocess.Popen(command, env=environ, cwd=_ROOT)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def until(is_there: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _START_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(httpx2.ConnectError):
            if is_there():
                return
        time.sleep(0.05)
    raise TimeoutError(f"a service did not start within {_START_S} s")
