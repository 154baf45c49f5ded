"""Core, its worker, Audience and the console as processes of their own, which a test may kill."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server.sockets import reserve_port
from support.api.core_settings import AUDIO_CREDENTIAL, BASE_URL, MASTER_KEY, OPERATOR_TOKEN
from support.audience.client import CREDENTIAL, audience_settings
from support.database.rival import Rival
from support.processes.command_server import ForkedCommand, running_command, share_command_server
from support.processes.up_process import clean_environ, status_of, until

_START_S = 30
_SERVE_AUDIENCE = Path(__file__).parent / "serve_audience.py"


@contextlib.contextmanager
def running_core(database_url: Secret, audience_url: str, **changes: str) -> Iterator[tuple[str, ForkedCommand]]:
    """Run Core on this database; yield its URL and its process. `changes` are settings by field name."""
    environ = {
        **_environ(database_url, audience_url),
        "SOUNDMARK_AUDIO_URL": "http://127.0.0.1:9",
        "SOUNDMARK_AUDIO_CREDENTIAL": AUDIO_CREDENTIAL,
        "SOUNDMARK_OPERATOR_TOKEN": OPERATOR_TOKEN,
        "SOUNDMARK_PRIVATE_TIMEOUT_S": "60",
        **{f"SOUNDMARK_{name.upper()}": value for name, value in changes.items()},
    }
    with reserve_port("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        command = ["serve", "core", "--port", str(port), "--beside-others"]
        with _running(command, environ) as process:
            url = f"http://127.0.0.1:{port}"
            until(lambda: status_of(f"{url}/healthz") == 200, _START_S)
            yield url, process


@contextlib.contextmanager
def running_worker(database_url: Secret, audience_url: str, **changes: str) -> Iterator[ForkedCommand]:
    """Run Core's worker on this database. `changes` are settings by field name."""
    environ = _environ(database_url, audience_url) | {f"SOUNDMARK_{name.upper()}": changes[name] for name in changes}
    with _running(["work", "core"], environ) as process:
        yield process


@contextlib.contextmanager
def running_audience(database_url: Secret) -> Iterator[tuple[str, ForkedCommand]]:
    """Run Audience on this database, on the machine's clock; yield its URL and its process."""
    settings = audience_settings(database_url)
    environ = {
        "SOUNDMARK_BASE_URL": settings.base_url,
        "SOUNDMARK_AUDIENCE_DATABASE_URL": database_url.reveal(),
        "SOUNDMARK_AUDIENCE_CREDENTIAL": CREDENTIAL,
        "SOUNDMARK_MASTER_KEY": settings.master_key.reveal(),
    }
    with reserve_port("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
    with _running([str(port)], environ, _SERVE_AUDIENCE) as process:
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
    arguments: list[str], environ: dict[str, str], script: Path | None = None
) -> contextlib.AbstractContextManager[ForkedCommand]:
    return running_command(share_command_server(), arguments, clean_environ(environ), script=script)


def _environ(database_url: Secret, audience_url: str) -> dict[str, str]:
    return {
        "SOUNDMARK_BASE_URL": BASE_URL,
        "SOUNDMARK_CORE_DATABASE_URL": database_url.reveal(),
        "SOUNDMARK_MASTER_KEY": MASTER_KEY,
        "SOUNDMARK_AUDIENCE_URL": audience_url,
        "SOUNDMARK_AUDIENCE_CREDENTIAL": CREDENTIAL,
    }


async def until_alone(rival: Rival) -> None:
    """Wait until PostgreSQL has noticed that a killed process is gone, and undone its last transaction."""
    async with asyncio.timeout(60):
        while await rival.rows(  # noqa: ASYNC110 - the event happens in PostgreSQL
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ):
            await asyncio.sleep(0.01)
