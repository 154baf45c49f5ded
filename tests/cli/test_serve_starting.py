"""`soundmark serve` where it cannot start: it says why in one line, and ends."""

import asyncio
import json
import subprocess
from collections.abc import Mapping

import psycopg
import pytest
from support.api.core_settings import MASTER_KEY, jobs_settings
from support.processes.up_process import SOUNDMARK, clean_environ

from soundmark.core.features.codes.signing_keys.service import ensure_active
from soundmark.core.operator import open_context
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server.sockets import reserve_port
from soundmark.kit.postgres.migrations import migrate
from soundmark.kit.postgres.sessions import READ_ONLY

from .serving import AUDIO, ended


def starting(component: str, environ: Mapping[str, str]) -> tuple[int, str, list[dict[str, object]]]:
    """Return how a component that cannot start ends: its status, its output, and the errors in it."""
    with reserve_port("127.0.0.1", 0) as held:  # Held meanwhile: otherwise it might end because the port is taken.
        done = ended(component, "--port", str(held.getsockname()[1]), environ=environ)
    events = [json.loads(line) for line in done.stderr.splitlines()]
    return done.returncode, done.stderr, [event for event in events if event["level"] == "error"]


def core_environ(url: str, master_key: str = MASTER_KEY) -> dict[str, str]:
    return {
        "SOUNDMARK_BASE_URL": "http://core.test",
        "SOUNDMARK_CORE_DATABASE_URL": url,
        "SOUNDMARK_MASTER_KEY": master_key,
        "SOUNDMARK_AUDIO_URL": "http://127.0.0.1:9",
        "SOUNDMARK_AUDIENCE_URL": "http://127.0.0.1:9",
        "SOUNDMARK_AUDIENCE_CREDENTIAL": "a-credential-of-audience",
        **AUDIO,
    }


@pytest.mark.parametrize(
    ("given", "arguments", "is_warned"),
    [
        ({}, (), False),
        ({"SOUNDMARK_TRUSTED_PROXIES": "10.0.0.0/8"}, (), True),
        ({}, ("--workers", "2"), True),
        ({"SOUNDMARK_RATE_LIMIT_URL": "redis://127.0.0.1:9"}, ("--workers", "2"), False),
    ],
    ids=["alone", "behind a proxy", "several", "several with a server"],
)
def test_several_processes_that_count_limits_alone_are_warned_of(
    given: Mapping[str, str], arguments: tuple[str, ...], is_warned: bool
) -> None:
    environ = {**core_environ("postgresql://core@127.0.0.1:1/core"), **given}
    check = [*SOUNDMARK, "config", "check", "core", *arguments]
    done = subprocess.run(check, check=False, capture_output=True, env=clean_environ(environ))
    assert (done.returncode, done.stdout) == (0, b"ok\n")
    assert (b"SOUNDMARK_RATE_LIMIT_URL is not set for core" in done.stderr) == is_warned
    if not arguments:  # Several processes would be started again and again without their database.
        _, output, _ = starting("core", environ)
        assert ("limits_not_shared" in output) == is_warned


def test_a_core_whose_database_was_never_migrated_says_so_in_one_line(cluster: RunningCluster) -> None:
    url = cluster.create_role_and_database("never_migrated").reveal()
    status, output, (error,) = starting("core", core_environ(url))
    assert (status, error["event"]) == (1, "cannot_start")
    assert "run `soundmark migrate core`" in str(error["reason"])
    assert "Traceback" not in output


def test_a_core_under_another_master_key_says_so_in_one_line(cluster: RunningCluster) -> None:
    url = cluster.create_role_and_database("sealed_by_another_key")
    migrate(url, "soundmark.core")
    asyncio.run(_make_keys(url))
    another = "A" * 43
    status, output, (error,) = starting("core", core_environ(url.reveal(), another))
    assert (status, error["event"]) == (1, "cannot_start")
    assert error["reason"] == "this master key does not open the stored signing keys: sealed under another master key"
    assert "Traceback" not in output
    assert another not in output


@pytest.mark.parametrize("component", ["core", "audience"])
def test_a_component_on_a_standby_says_so_in_one_line(
    cluster: RunningCluster, component: str, subtests: pytest.Subtests
) -> None:
    """Also where its URL says that any session will do: it writes when it starts."""
    name = f"read_only_{component}"
    url = cluster.create_role_and_database(name)
    migrate(url, f"soundmark.{component}")
    with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as superuser:
        superuser.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
    for query in ("", "?target_session_attrs=any"):
        environ = {
            "core": core_environ(url.reveal() + query),
            "audience": {
                "SOUNDMARK_AUDIENCE_DATABASE_URL": url.reveal() + query,
                "SOUNDMARK_AUDIENCE_CREDENTIAL": "a-credential-of-audience",
                "SOUNDMARK_MASTER_KEY": "A" * 43,
            },
        }
        with subtests.test(query):
            status, output, (error,) = starting(component, environ[component])
            assert (status, error["event"]) == (1, "cannot_start")
            assert error["reason"] == f"{component.capitalize()}'s database {READ_ONLY}"
            assert "Traceback" not in output


async def _make_keys(url: Secret) -> None:
    async with open_context(jobs_settings(url), "tests") as ctx:
        await ensure_active(ctx)


@pytest.mark.parametrize("component", ["core", "audience"])
def test_a_component_without_its_database_says_so_in_one_line(component: str) -> None:
    with reserve_port("127.0.0.1", 0) as held:
        url = f"postgresql://somebody:confidential@127.0.0.1:{held.getsockname()[1]}/somewhere"
        environ = {
            "core": core_environ(url),
            "audience": {
                "SOUNDMARK_AUDIENCE_DATABASE_URL": url,
                "SOUNDMARK_AUDIENCE_CREDENTIAL": "a-credential-of-audience",
                "SOUNDMARK_MASTER_KEY": "A" * 43,
            },
        }
        status, output, (error,) = starting(component, environ[component])
    assert (status, error["event"]) == (1, "cannot_start")
    assert error["reason"] == f"{component.capitalize()}'s database does not answer"
    assert "Traceback" not in output
    assert "confidential" not in output
