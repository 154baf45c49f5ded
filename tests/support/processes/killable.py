"""Core, its worker, Audience and the console as processes of their own, which a test may kill."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server.sockets import reserve_port
from support.api.core_settings import AUDIO_CREDENTIAL, BASE_URL, MASTER_KEY, OPERATOR_TOKEN
from support.audience.client import CREDENTIAL, audience_settings
from support.database.rival import Rival
from support.processes.command_server import ForkedCommand, running_command, share_command_server
from support.processes.up_process import clean_environ, status_of, until

_START_S = 30
_NO_VARIABLES: Final[Mapping[str, str]] = {}
OPERATOR: Final = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
# The states of a task's jobs, and the statement that runs a task with a schedule now.
JOBS: Final = "SELECT status::text FROM procrastinate_jobs WHERE task_name = '{}'"
RUN: Final = "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES ('default', %s, '{\"timestamp\": 0}')"


@dataclass(frozen=True)
class Doomed:
    """A process that a test kills, and the requests whose answers are lost with it."""

    url: str
    process: ForkedCommand
    _lost: list[asyncio.Task[None]] = field(default_factory=list)

    def lose(self, method: str, path: str, *, headers: dict[str, str] = OPERATOR, **request: Any) -> None:
        """Send a request, by default as the operator. The block of the process fails if it is answered."""
        self._lost.append(asyncio.create_task(self._lose(method, path, headers=headers, **request)))

    async def _lose(self, method: str, path: str, **request: Any) -> None:
        async with httpx2.AsyncClient(base_url=self.url, timeout=60) as client:
            with pytest.raises(httpx2.HTTPError):
                await client.request(method, path, **request)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    async def until_lost(self) -> None:
        """Wait until every request has ended without a response."""
        await asyncio.gather(*self._lost)

    @contextlib.asynccontextmanager
    async def dying_while(self, holder: Rival, lock: str) -> AsyncIterator[None]:
        """Kill the process while it waits for a lock of the test's own, which the block makes it ask for."""
        async with holder.holding(lock):
            yield
            await holder.until_someone_waits()
            self.kill()
        await until_alone(holder)


@dataclass(frozen=True)
class Killable:
    """Cores and workers beside the shared Core, each in a process of its own."""

    database_url: Secret
    audience_url: str
    urls: dict[str, str]

    @contextlib.asynccontextmanager
    async def core(self, **changes: str) -> AsyncIterator[Doomed]:
        """Run Core; `changes` are settings by field name. What was sent to it with `lose` has no answer at the end."""
        settings = {"audience_url": self.audience_url, **self.urls, **changes}
        with running_core(self.database_url, **settings) as (url, process):
            doomed = Doomed(url, process)
            yield doomed
            await doomed.until_lost()

    @contextlib.asynccontextmanager
    async def worker(self, **changes: str) -> AsyncIterator[Doomed]:
        """Run Core's worker; `changes` are settings by field name."""
        with running_worker(self.database_url, self.audience_url, **(self.urls | changes)) as process:
            yield Doomed("", process)

    async def finish_job(self, rival: Rival, task: str) -> None:
        """Run another worker, as if a minute had passed since one was killed, until the killed one's job is done."""
        await rival.run("UPDATE procrastinate_workers SET last_heartbeat = last_heartbeat - interval '1 minute'")
        async with self.worker():
            await rival.run(RUN, "retry_stalled_jobs")
            await rival.until_rows(JOBS.format(task), ("succeeded",))

    @contextlib.asynccontextmanager
    async def command(self, *arguments: str) -> AsyncIterator[Doomed]:
        """Run an operator's command on the database."""
        with _running(list(arguments), _environ(self.database_url, self.audience_url)) as process:
            yield Doomed("", process)


@contextlib.contextmanager
def running_core(
    database_url: Secret,
    audience_url: str,
    *,
    log: str = os.devnull,
    server: Path | None = None,
    variables: Mapping[str, str] = _NO_VARIABLES,
    must_serve: bool = True,
    **changes: str,
) -> Iterator[tuple[str, ForkedCommand]]:
    """Run Core on this database; yield its URL and its process, by default once it serves.

    `server` forks it, by default this worker's. `changes` are settings by field name, `variables` others of the
    environment.
    """
    environ = {
        **_environ(database_url, audience_url),
        "SOUNDMARK_AUDIO_URL": "http://127.0.0.1:9",
        "SOUNDMARK_AUDIO_CREDENTIAL": AUDIO_CREDENTIAL,
        "SOUNDMARK_OPERATOR_TOKEN": OPERATOR_TOKEN,
        "SOUNDMARK_PRIVATE_TIMEOUT_S": "60",
        **{f"SOUNDMARK_{name.upper()}": value for name, value in changes.items()},
        **variables,
    }
    with reserve_port("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        command = ["serve", "core", "--port", str(port), "--beside-others"]
        with _running(command, environ, log=log, server=server) as process:
            url = f"http://127.0.0.1:{port}"
            if must_serve:
                until(lambda: status_of(f"{url}/healthz") == 200, _START_S)
            yield url, process


@contextlib.contextmanager
def running_worker(
    database_url: Secret, audience_url: str, *, log: str = os.devnull, server: Path | None = None, **changes: str
) -> Iterator[ForkedCommand]:
    """Run Core's worker on this database. `changes` are settings by field name."""
    environ = _environ(database_url, audience_url) | {f"SOUNDMARK_{name.upper()}": changes[name] for name in changes}
    with _running(["work", "core"], environ, log=log, server=server) as process:
        yield process


@contextlib.contextmanager
def running_audience(
    database_url: Secret, *, log: str = os.devnull, server: Path | None = None, **changes: str
) -> Iterator[tuple[str, ForkedCommand]]:
    """Run Audience on this database, on the machine's clock; yield its URL and its process.

    `changes` are settings by field name.
    """
    settings = audience_settings(database_url)
    environ = {
        "SOUNDMARK_BASE_URL": settings.base_url,
        "SOUNDMARK_AUDIENCE_DATABASE_URL": database_url.reveal(),
        "SOUNDMARK_AUDIENCE_CREDENTIAL": CREDENTIAL,
        "SOUNDMARK_MASTER_KEY": settings.master_key.reveal(),
        **{f"SOUNDMARK_{name.upper()}": value for name, value in changes.items()},
    }
    with reserve_port("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        command = ["serve", "audience", "--port", str(port), "--beside-others"]
        with _running(command, environ, log=log, server=server) as process:
            url = f"http://127.0.0.1:{port}"
            until(lambda: status_of(f"{url}/healthz") == 200, _START_S)
            yield url, process


@contextlib.contextmanager
def running_console(port: int, **changes: str) -> Iterator[ForkedCommand]:
    """Run a console without a Core on a port that the test holds; yield its process."""
    environ = {
        "SOUNDMARK_BASE_URL": "http://127.0.0.1:9",
        "SOUNDMARK_CONSOLE_URL": f"http://127.0.0.1:{port}",
        **{f"SOUNDMARK_{name.upper()}": value for name, value in changes.items()},
    }
    with _running(["serve", "console", "--port", str(port), "--beside-others"], environ) as process:
        until(lambda: status_of(f"http://127.0.0.1:{port}/healthz") == 200, _START_S)
        yield process


def _running(
    arguments: list[str], environ: dict[str, str], *, log: str = os.devnull, server: Path | None = None
) -> contextlib.AbstractContextManager[ForkedCommand]:
    streams = (os.devnull, log)
    return running_command(server or share_command_server(), arguments, clean_environ(environ), streams=streams)


def _environ(database_url: Secret, audience_url: str) -> dict[str, str]:
    return {
        "SOUNDMARK_BASE_URL": BASE_URL,
        "SOUNDMARK_CORE_DATABASE_URL": database_url.reveal(),
        "SOUNDMARK_MASTER_KEY": MASTER_KEY,
        "SOUNDMARK_AUDIENCE_URL": audience_url,
        "SOUNDMARK_AUDIENCE_CREDENTIAL": CREDENTIAL,
    }


async def kill_while_waiting(
    holder: Rival, lock: str, running: AbstractAsyncContextManager[Doomed], *, count: int = 1
) -> None:
    """Start a process, and kill it while `count` sessions wait for a lock of the test's own: `COMMITTING` to commit."""
    async with holder.holding(lock), running as doomed:
        await holder.until_someone_waits(count)
        doomed.kill()
    await until_alone(holder)


async def until_alone(rival: Rival) -> None:
    """Wait until PostgreSQL has noticed that a killed process is gone, and undone its last transaction."""
    await rival.until_rows(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
