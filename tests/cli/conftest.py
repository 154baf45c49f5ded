"""The real command in its own process, with an environment that the test alone decides."""

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.database.connections import borrow
from support.database.core_database import read_signing_keys, restore_core
from support.processes.command_server import run_command, share_command_server
from support.processes.running_apps import make_worker, served_in_thread
from support.tenancy.tenant import INTENT

from soundmark.core.app import create_app
from soundmark.core.context import Context
from soundmark.core.domain.log.state import Transparency, Witness
from soundmark.core.features.log.integration.integrator import LogIntegrator
from soundmark.core.features.log.integration.opening import renew_log
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.asgi import AsgiApp
from soundmark.kit.postgres.migrations import migrate
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.settings import CoreSettings

COMMAND = (sys.executable, "-P", "-m", "soundmark")
DATABASE = "core_of_commands"
PastPolicies = Callable[..., None]


@dataclass(frozen=True)
class Done:
    """How a command ended: its exit status and its output."""

    status: int
    out: str
    err: str

    @property
    def refusal(self) -> str:
        """Return the one line with which the command refused."""
        assert self.status == 1, self
        assert self.err.startswith("soundmark: "), self
        assert self.err.count("\n") == 1, self
        return self.err.removeprefix("soundmark: ").strip()


def run(*arguments: str, settings: Mapping[str, str] | None = None) -> Done:
    """Run `soundmark` to its end in its own process; `settings` by name without prefix."""
    return run_in(environ(settings or {}), *arguments)


def run_in(environ: Mapping[str, str], *arguments: str) -> Done:
    """Run `soundmark` to its end in its own process, with this environment."""
    return Done(*run_command(share_command_server(), arguments, environ, timeout_s=90))


def environ(settings: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SOUNDMARK_")}
    return {**kept, **{f"SOUNDMARK_{name}": value for name, value in settings.items()}}


@pytest.fixture(autouse=True)
def nowhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder, without a configuration or a state of commands: who runs the tests may have all three."""
    folder = tmp_path_factory.mktemp("nowhere")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    return folder


@dataclass(frozen=True)
class Service:
    """A Core on a real socket, and its operator's client."""

    settings: CoreSettings
    url: str
    client: httpx2.Client
    database_url: Secret

    def make_other_app(self) -> AsgiApp:
        """Return a second Core on the same database, not started: an app lives in one event loop only."""
        return create_app(self.settings)

    def make_code(self, **changes: Any) -> dict[str, Any]:
        organization_id = self._post("/v1/organizations", {"name": "Radio Nordlicht"})["id"]
        project = {"organization_id": organization_id, "name": "Morning show"}
        request = {
            "organization_id": organization_id,
            "project_id": self._post("/v1/projects", project)["id"],
            "issuer": "Radio Nordlicht",
            "expires_at": format_timestamp(datetime.now(UTC) + timedelta(hours=1)),
            "intent": INTENT,
            **changes,
        }
        return self._post("/v1/codes", request)

    def sound_of(self, code: dict[str, Any]) -> bytes:
        query = {"organization_id": code["organization_id"]}
        return self.client.get(f"/v1/codes/{code['xr_id']}/audio", params=query).raise_for_status().content

    def revoke(self, code: dict[str, Any]) -> None:
        query = {"organization_id": code["organization_id"]}
        self.client.post(f"/v1/codes/{code['xr_id']}/revoke", params=query).raise_for_status()

    def run_sql(self, statement: str, *params: Any) -> None:
        """Change what no route changes."""
        with psycopg.connect(self.database_url.reveal(), autocommit=True) as connection:
            connection.execute(statement.encode(), params)

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        created: dict[str, Any] = self.client.post(path, json=body).raise_for_status().json()
        return created


@contextlib.contextmanager
def serving_core(database_url: Secret, **settings: Any) -> Iterator[Service]:
    """Serve a Core with these settings until the block ends."""
    read = core_settings(database_url, **settings)
    headers = {"authorization": f"Bearer {OPERATOR_TOKEN}"}
    with (
        served_in_thread(create_app(read)) as url,
        httpx2.Client(base_url=url, headers=headers, trust_env=False) as client,
    ):
        yield Service(read, url, client, database_url)


@pytest.fixture(scope="session")
def session_service(cluster: RunningCluster, audio_url: str) -> Iterator[Service]:
    """One Core for the commands of all tests of a worker."""
    url = cluster.create_role_and_database(DATABASE)
    migrate(url, "soundmark.core")
    with serving_core(url, audio_url=audio_url) as service:
        yield service


@pytest.fixture(scope="session")
def session_service_keys(session_service: Service) -> list[Any]:
    """The signing keys that it made when it started."""
    return read_signing_keys(session_service.database_url)


@pytest.fixture
def service(cluster: RunningCluster, session_service: Service, session_service_keys: list[Any]) -> Service:
    """A Core without content."""
    restore_core(cluster.superuser_url_of(DATABASE), session_service_keys)
    return session_service


@pytest.fixture
def past_policies(cluster: RunningCluster, service: Service) -> PastPolicies:
    """Run a statement as a superuser, who bypasses row-level security."""
    assert service is not None, "the database is empty"

    def run_statement(statement: str, *params: Any) -> None:
        with borrow(cluster.superuser_url_of(DATABASE)) as connection:
            connection.execute(statement.encode(), params)

    return run_statement


@pytest.fixture
async def ctx(service: Service, past_policies: PastPolicies) -> AsyncIterator[Context]:
    """A worker's context, with a log of its own."""
    past_policies("DELETE FROM log_queue")
    async with make_worker(service.database_url) as context:
        await renew_log(context, "core.test/v1/log")
        yield context


async def integrate(ctx: Context, *witnesses: Witness) -> None:
    """Do what the worker does: add everything that waits to the log, and have these witnesses cosign it."""
    quorum = len(witnesses)
    integrator = LogIntegrator(replace(ctx, transparency=Transparency("core.test/v1/log", witnesses, quorum)))
    await integrator.integrate_once()
    await integrator.ask_once()
    await integrator.finish_asking()


@dataclass(frozen=True)
class Tenant:
    """A project of a service, and an API key for its Codes."""

    service: Service
    organization_id: str
    project_id: str
    key: str

    def run(self, *arguments: str, url: str | None = None, key: str | None = None) -> Done:
        """Run a command that calls the API with the API key, or with `key`."""
        settings = {"BASE_URL": url or self.service.url, "API_KEY": key or self.key}
        return run(*arguments, "--organization", self.organization_id, settings=settings)

    def run_as_operator(self, *arguments: str, **settings: str) -> Done:
        """Run a command as the operator, without naming an organisation."""
        return run(*arguments, settings={"BASE_URL": self.service.url, "API_KEY": OPERATOR_TOKEN, **settings})

    def run_with_key(self, *arguments: str, **settings: str) -> Done:
        """Run a command with the API key, without naming an organisation."""
        return run(*arguments, settings={"BASE_URL": self.service.url, "API_KEY": self.key, **settings})

    @property
    def issuing(self) -> tuple[str, ...]:
        """Return the arguments that every `codes issue` needs, except for the organisation."""
        intent = json.dumps(INTENT)
        return ("--project", self.project_id, "--issuer", "Radio Nordlicht", "--intent", intent, "--expires-in", "1h")

    def answer(self, path: str, **query: str) -> Any:
        """Return the response of the API."""
        params = {"organization_id": self.organization_id, **query}
        return self.service.client.get(path, params=params).raise_for_status().json()

    def make_codes(self, count: int, **changes: Any) -> list[dict[str, Any]]:
        expires_at = format_timestamp(datetime.now(UTC) + timedelta(hours=1))
        request = {
            "organization_id": self.organization_id,
            "project_id": self.project_id,
            "issuer": "Radio Nordlicht",
            "expires_at": expires_at,
            "intent": INTENT,
            "count": count,
            **changes,
        }
        codes: list[dict[str, Any]] = self.service._post("/v1/codes/batch", request)["data"]
        return codes

    def make_campaign(self, name: str = "Summer", **changes: Any) -> dict[str, Any]:
        request = {"organization_id": self.organization_id, "project_id": self.project_id, "name": name, **changes}
        return self.service._post("/v1/campaigns", request)


@pytest.fixture
def tenant(service: Service) -> Tenant:
    """An organisation with one project."""
    organization_id = service._post("/v1/organizations", {"name": "Radio Nordlicht"})["id"]
    project = service._post("/v1/projects", {"organization_id": organization_id, "name": "Morning show"})
    request = {"organization_id": organization_id, "project_id": project["id"], "scopes": ["codes:read", "codes:write"]}
    return Tenant(service, organization_id, project["id"], service._post("/v1/api-keys", request)["secret"])


def answered(done: Done) -> Any:
    """Return the one line of JSON that a command printed."""
    assert (done.status, done.err) == (0, ""), done
    assert done.out.count("\n") == 1
    return json.loads(done.out)


def cells(done: Done) -> list[list[str]]:
    """Return the rows of the table that a command printed."""
    assert (done.status, done.err) == (0, ""), done
    return [[part.strip() for part in line.strip("│").split("│")] for line in done.out.splitlines() if "│" in line]
