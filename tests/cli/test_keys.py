"""`soundmark keys` on a real database, and the effect of a rotation on Cores and receivers."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from datetime import datetime
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from soundmark_sdk import AsyncReceiver
from support.api.core_client import Api
from support.api.core_settings import AUDIENCE_CREDENTIAL, MASTER_KEY, core_settings
from support.processes.command_server import find_forked_soundmark
from support.processes.running_apps import running_core
from support.tenancy.tenant import make_tenant

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret

from .conftest import COMMAND, environ, run

Settings = dict[str, str]
OTHER_MASTER_KEY = "A" * 43


@pytest.fixture
def settings(spare_database_url: Secret, measuring_url: str) -> Settings:
    """The settings of the commands under test."""
    return {
        "CORE_DATABASE_URL": spare_database_url.reveal(),
        "MASTER_KEY": MASTER_KEY,
        "AUDIENCE_URL": measuring_url,
        "AUDIENCE_CREDENTIAL": AUDIENCE_CREDENTIAL,
    }


@pytest.fixture
def connection(spare_database_url: Secret) -> Iterator[psycopg.Connection[Any]]:
    """A connection that commits each statement."""
    with psycopg.connect(spare_database_url.reveal(), autocommit=True) as opened:
        yield opened


def listed(settings: Settings) -> list[dict[str, Any]]:
    done = run("keys", "list", "--json", settings=settings)
    assert done.status == 0, done
    keys: list[dict[str, Any]] = json.loads(done.out)
    return keys


def make_rotation(settings: Settings) -> tuple[str, str]:
    """Rotate, and return the ids of a `retiring` and of the `active` key."""
    assert run("keys", "rotate", "--no-wait", settings=settings).status == 0
    old, new = listed(settings)
    return old["key_id"], new["key_id"]


def test_a_key_passes_through_its_states_one_command_at_a_time(settings: Settings) -> None:
    assert run("keys", "stage", settings=settings).status == 0
    first, staged = listed(settings)
    assert (first["status"], staged["status"]) == ("active", "next")

    assert run("keys", "activate", staged["key_id"], settings=settings).status == 0

    old, new = listed(settings)
    assert (old["key_id"], old["status"]) == (first["key_id"], "retiring")
    assert (new["key_id"], new["status"]) == (staged["key_id"], "active")
    assert old["superseded_at"] == new["activated_at"]


def test_the_table_shows_ids_states_and_times_and_no_key_material(settings: Settings) -> None:
    old, new = make_rotation(settings)

    shown = run("keys", "list", settings=settings).out

    assert all(text in shown for text in (old, new, "retiring", "active", "Created", "Activated", "Superseded"))
    assert MASTER_KEY not in shown


def test_rotate_takes_the_staged_key_and_waits_until_a_minute_has_passed_since(
    settings: Settings, connection: psycopg.Connection[Any]
) -> None:
    """A receiver that cached `/v1/keys` just before the staging has refreshed it when the key begins to sign."""
    run("keys", "stage", settings=settings)
    staged = listed(settings)[1]["key_id"]
    connection.execute("UPDATE signing_keys SET created_at = created_at - interval '58 s' WHERE status = 'next'")

    done = run("keys", "rotate", settings=settings)

    keys = {key["status"]: key for key in listed(settings)}
    new = keys["active"]
    assert (done.status, new["key_id"], set(keys)) == (0, staged, {"active", "retiring"})
    published = datetime.fromisoformat(new["activated_at"]) - datetime.fromisoformat(new["created_at"])
    assert 60 <= published.total_seconds() < 90


def test_rotate_waits_until_no_proof_of_the_previous_key_is_valid(
    settings: Settings, connection: psycopg.Connection[Any]
) -> None:
    """Audience keeps one key besides the new one, so a second rotation within six minutes would refuse valid events."""
    first, second = make_rotation(settings)
    run("keys", "stage", settings=settings)
    connection.execute("UPDATE signing_keys SET created_at = created_at - interval '70 s' WHERE status = 'next'")
    connection.execute("UPDATE signing_keys SET superseded_at = now() - interval '357 s' WHERE status = 'retiring'")

    done = run("keys", "rotate", settings=settings)

    keys = {key["key_id"]: key for key in listed(settings)}
    (new,) = (key for key in keys.values() if key["status"] == "active")
    assert (done.status, keys[first]["status"], keys[second]["status"]) == (0, "retiring", "retiring")
    waited = datetime.fromisoformat(new["activated_at"]) - datetime.fromisoformat(keys[first]["superseded_at"])
    assert 360 <= waited.total_seconds() < 390


def test_an_interrupted_rotation_has_only_staged_and_can_be_continued(settings: Settings) -> None:
    """Nothing is half done whenever the command is killed: one transaction replaces the signing key."""
    interrupted = run_until_waiting(settings)
    assert [key["status"] for key in listed(settings)] == ["active", "next"]

    done = run("keys", "rotate", "--no-wait", settings=settings)

    assert done.status == 0
    assert interrupted in done.out
    assert [key["status"] for key in listed(settings)] == ["retiring", "active"]


def run_until_waiting(settings: Settings) -> str:
    """Start a rotation, kill it while it waits, and return the key that it staged."""

    async def killed() -> str:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            "keys",
            "rotate",
            env={**environ(settings), "PYTHONUNBUFFERED": "1"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        process.kill()
        await process.wait()
        return line.split()[0]

    return asyncio.run(killed())


def test_a_key_that_still_verifies_something_is_not_retired(
    settings: Settings, connection: psycopg.Connection[Any]
) -> None:
    old, new = make_rotation(settings)

    assert "signed proofs a moment ago" in run("keys", "retire", old, settings=settings).refusal
    assert "only a key that has been replaced" in run("keys", "retire", new, settings=settings).refusal
    assert "there is no key sig_none" in run("keys", "activate", "sig_none", settings=settings).refusal
    assert [key["status"] for key in listed(settings)] == ["retiring", "active"]

    connection.execute("UPDATE signing_keys SET superseded_at = superseded_at - interval '7 min'")
    assert run("keys", "retire", old, settings=settings).status == 0
    assert [key["status"] for key in listed(settings)] == ["retired", "active"]
    assert connection.execute("SELECT sealed_seed FROM signing_keys WHERE key_id = %s", [old]).fetchone() == (None,)


@pytest.mark.parametrize("command", [("rotate", "--no-wait"), ("activate",)])
def test_every_integration_gets_the_key(settings: Settings, cluster: RunningCluster, command: tuple[str, ...]) -> None:
    run("keys", "stage", settings=settings)
    old, staged = (key["key_id"] for key in listed(settings))
    with psycopg.connect(cluster.superuser_url_of("audience_beside_core").reveal(), autocommit=True) as audience:
        audience.execute(
            "INSERT INTO integrations (id, organization_id, project_id, mode, retention_days, sealed_secret,"
            " core_key_id, core_public_key, created_at)"
            " VALUES ('int_of_the_command_line', 'org_x', 'prj_x', 'demo', 14, '', %s, '', now())",
            [old],
        )
        try:
            arguments = (*command, staged) if command == ("activate",) else command
            assert run("keys", *arguments, settings=settings).status == 0
            stored = audience.execute("SELECT core_key_id, previous_key_id FROM integrations").fetchall()
        finally:
            audience.execute("DELETE FROM integrations WHERE id = 'int_of_the_command_line'")
    assert (staged, old) in stored


def test_without_audience_no_key_is_activated_but_in_an_emergency(settings: Settings) -> None:
    """Audience would refuse what the key signs. In an emergency that matters less than misuse of the old key."""
    run("keys", "stage", settings=settings)
    _, staged = (key["key_id"] for key in listed(settings))
    away = {**settings, "AUDIENCE_URL": "http://127.0.0.1:9"}
    refusal = run("keys", "activate", staged, settings=away).refusal
    assert refusal == (
        f"Audience does not answer, so {staged} does not sign yet; run this again, or let the worker finish"
    )
    assert [key["status"] for key in listed(settings)] == ["active", "next"]
    done = run("keys", "rotate", "--no-wait", settings=away)
    assert (done.status, [key["status"] for key in listed(settings)]) == (0, ["retiring", "active"])
    assert "Audience does not answer; Core's worker will send it the key as soon as possible" in done.err


@pytest.mark.parametrize("command", [("stage",), ("rotate", "--no-wait")])
def test_under_another_master_key_nothing_is_changed(settings: Settings, command: tuple[str, ...]) -> None:
    """A key sealed under another master key would keep every Core of the deployment from starting."""
    run("keys", "stage", settings=settings)
    before = listed(settings)

    refusal = run("keys", *command, settings={**settings, "MASTER_KEY": OTHER_MASTER_KEY}).refusal

    assert "master key" in refusal
    assert listed(settings) == before


def test_an_unavailable_database_is_one_line(settings: Settings) -> None:
    away = {**settings, "CORE_DATABASE_URL": "postgresql://core:hidden@127.0.0.1:9/core"}

    refusal = run("keys", "stage", settings=away).refusal

    assert refusal == "Core's database does not answer"


def test_a_database_that_was_never_migrated_is_one_line(settings: Settings, cluster: RunningCluster) -> None:
    empty = {**settings, "CORE_DATABASE_URL": cluster.create_role_and_database("never_migrated").reveal()}

    assert "soundmark migrate core" in run("keys", "list", settings=empty).refusal


def test_missing_settings_are_named_together() -> None:
    refusal = run("keys", "stage").refusal

    assert "SOUNDMARK_CORE_DATABASE_URL" in refusal
    assert "SOUNDMARK_MASTER_KEY" in refusal


def test_a_data_dir_supplies_what_the_environment_lacks(settings: Settings, tmp_path: Path) -> None:
    up = {"core_database_url": settings["CORE_DATABASE_URL"], "audience_url": settings["AUDIENCE_URL"]}
    (tmp_path / "up.json").write_text(json.dumps(up), encoding="utf-8")
    (tmp_path / "master.key").write_text(MASTER_KEY + "\n", encoding="utf-8")

    assert run("keys", "stage", "--data-dir", str(tmp_path)).status == 0
    # An empty value counts as unset, as everywhere.
    assert run("keys", "stage", "--data-dir", str(tmp_path), settings={"MASTER_KEY": ""}).status == 0
    assert (
        "master key"
        in run("keys", "stage", "--data-dir", str(tmp_path), settings={"MASTER_KEY": OTHER_MASTER_KEY}).refusal
    )
    assert len(listed(settings)) == 2
    # The credential is derived from the key: here it differs from that of the tests' Audience, and is sent.
    rotated = run("keys", "rotate", "--no-wait", "--data-dir", str(tmp_path), settings={"AUDIENCE_CREDENTIAL": ""})
    assert (rotated.status, "Audience does not answer" in rotated.err) == (0, True)


class TwoCores(httpx2.AsyncBaseTransport):
    """A load balancer that sends each request to the other process than the one before."""

    def __init__(self, cores: list[Api]) -> None:
        self._transports = cycle([httpx2.ASGITransport(app=core.app) for core in cores])  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await next(self._transports).handle_async_request(request)


@pytest.fixture
async def cores(spare_database_url: Secret) -> AsyncIterator[list[Api]]:
    """Two Cores on one database."""
    async with AsyncExitStack() as stack:
        settings = core_settings(spare_database_url)
        yield [await stack.enter_async_context(running_core(settings)) for _ in range(2)]


async def test_a_rotation_needs_no_restart_and_fails_no_resolution(cores: list[Api], settings: Settings) -> None:
    """Two processes, eight receivers that never pause, and an emergency rotation, which waits for no cache.

    Each receiver is the SDK with its cached keys, and raises for any answer that it cannot verify.
    """
    tenant = await make_tenant(cores[0])
    tokens = cycle([(await tenant.make_code())["broadcast_token"] for _ in range(16)])
    seen: list[str] = []
    rotated_to = ""
    moved_on, stopping = asyncio.Event(), asyncio.Event()

    async def receive() -> None:
        async with AsyncReceiver("https://core.test", transport=TwoCores(cores)) as receiver:
            while not stopping.is_set():
                seen.append((await receiver.resolve(next(tokens))).key_id)
                if set(seen[-200:]) == {rotated_to}:
                    moved_on.set()

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        for _ in range(8):
            tasks.create_task(receive())
        command = [find_forked_soundmark(), "keys", "rotate", "--no-wait"]
        rotation = await asyncio.create_subprocess_exec(*command, env=environ(settings))
        assert await rotation.wait() == 0
        old, new = await asyncio.to_thread(listed, settings)
        rotated_to = new["key_id"]
        await moved_on.wait()  # Both processes, and every shared envelope.
        code = await tenant.make_code()
        stopping.set()

    assert set(seen) == {old["key_id"], new["key_id"]}
    assert code["signed_code"]["key_id"] == new["key_id"]
    async with AsyncReceiver("https://core.test", transport=TwoCores(cores)) as receiver:
        assert (await receiver.resolve(code["broadcast_token"])).key_id == new["key_id"]
