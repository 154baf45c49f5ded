"""The real command in a process of its own, with an environment that only the test decides."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from support.core_settings import OPERATOR_TOKEN, core_settings
from support.running_apps import served_in_thread
from support.tenant import INTENT

from soundmark.core.app import create_app
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.http import AsgiApp
from soundmark.kit.secret import Secret
from soundmark.kit.timestamps import format_timestamp

COMMAND = (sys.executable, "-P", "-m", "soundmark")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def refusal(self) -> str:
        """The one line with which the command was refused."""
        assert self.status == 1, self
        assert self.err.startswith("soundmark: "), self
        assert self.err.count("\n") == 1, self
        return self.err.removeprefix("soundmark: ").strip()


def run(*arguments: str, settings: Mapping[str, str] | None = None) -> Done:
    """Run `soundmark` to its end; `settings` by name without prefix."""
    done = subprocess.run(
        [*COMMAND, *arguments], check=False, capture_output=True, text=True, timeout=90, env=environ(settings or {})
    )
    return Done(done.returncode, done.stdout, done.stderr)


def environ(settings: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SOUNDMARK_")}
    return {**kept, **{f"SOUNDMARK_{name}": value for name, value in settings.items()}}


@pytest.fixture(autouse=True)
def nowhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where nothing runs, and a person who chose nothing: whoever runs the tests may have done both."""
    folder = tmp_path_factory.mktemp("nowhere")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    return folder


@dataclass(frozen=True)
class Service:
    """A Core on a real socket, and its operator's client."""

    other_app: AsgiApp  # A second Core on the same database, not started: an app lives in one event loop only.
    url: str
    client: httpx2.Client
    database_url: Secret

    def make_code(self, **changes: Any) -> dict[str, Any]:
        organization_id = self._post("/v1/organizations", {"name": "Radio Nordlicht"})["id"]
        project = {"organization_id": organization_id, "name": "Morning show"}
        wanted = {
            "organization_id": organization_id,
            "project_id": self._post("/v1/projects", project)["id"],
            "issuer": "Radio Nordlicht",
            "expires_at": format_timestamp(datetime.now(UTC) + timedelta(hours=1)),
            "intent": INTENT,
            **changes,
        }
        return self._post("/v1/codes", wanted)

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


@pytest.fixture
def service(spare_database_url: Secret, audio_url: str) -> Iterator[Service]:
    settings = core_settings(spare_database_url, audio_url=audio_url)
    headers = {"authorization": f"Bearer {OPERATOR_TOKEN}"}
    with (
        served_in_thread(create_app(settings)) as url,
        httpx2.Client(base_url=url, headers=headers, trust_env=False) as client,
    ):
        yield Service(create_app(settings), url, client, spare_database_url)


@pytest.fixture
def past_policies(cluster: RunningCluster, service: Service) -> Callable[..., None]:
    """Runs a statement that no tenant could: row-level security does not hold for it."""
    assert service is not None, "its database is the spare one"

    def run_statement(statement: str, *params: Any) -> None:
        with psycopg.connect(cluster.superuser_url_of("core_spare").reveal(), autocommit=True) as connection:
            connection.execute(statement.encode(), params)

    return run_statement


@dataclass(frozen=True)
class Tenant:
    """A project of a service, with a server key that may do everything with its Codes."""

    service: Service
    organization_id: str
    project_id: str
    key: str

    def run(self, *arguments: str, url: str | None = None, key: str | None = None) -> Done:
        """Run a command that calls the API, as the key unless told."""
        settings = {"BASE_URL": url or self.service.url, "API_KEY": key or self.key}
        return run(*arguments, "--organization", self.organization_id, settings=settings)

    def run_as_operator(self, *arguments: str, **settings: str) -> Done:
        """Run a command as the person who owns everything, without saying which organisation it is about."""
        return run(*arguments, settings={"BASE_URL": self.service.url, "API_KEY": OPERATOR_TOKEN, **settings})

    def run_with_key(self, *arguments: str, **settings: str) -> Done:
        """Run a command as the server key, without saying which organisation it is about."""
        return run(*arguments, settings={"BASE_URL": self.service.url, "API_KEY": self.key, **settings})

    @property
    def issuing(self) -> tuple[str, ...]:
        """What every `codes issue` needs, but for the organisation."""
        intent = json.dumps(INTENT)
        return ("--project", self.project_id, "--issuer", "Radio Nordlicht", "--intent", intent, "--expires-in", "1h")

    def answer(self, path: str, **query: str) -> Any:
        """What the API says now."""
        params = {"organization_id": self.organization_id, **query}
        return self.service.client.get(path, params=params).raise_for_status().json()

    def make_codes(self, count: int, **changes: Any) -> list[dict[str, Any]]:
        expires_at = format_timestamp(datetime.now(UTC) + timedelta(hours=1))
        wanted = {
            "organization_id": self.organization_id,
            "project_id": self.project_id,
            "issuer": "Radio Nordlicht",
            "expires_at": expires_at,
            "intent": INTENT,
            "count": count,
            **changes,
        }
        codes: list[dict[str, Any]] = self.service._post("/v1/codes/batch", wanted)["data"]
        return codes

    def make_campaign(self, name: str = "Summer", **changes: Any) -> dict[str, Any]:
        wanted = {"organization_id": self.organization_id, "project_id": self.project_id, "name": name, **changes}
        return self.service._post("/v1/campaigns", wanted)


@pytest.fixture
def tenant(service: Service) -> Tenant:
    organization_id = service._post("/v1/organizations", {"name": "Radio Nordlicht"})["id"]
    project = service._post("/v1/projects", {"organization_id": organization_id, "name": "Morning show"})
    wanted = {"organization_id": organization_id, "project_id": project["id"], "scopes": ["codes:read", "codes:write"]}
    return Tenant(service, organization_id, project["id"], service._post("/v1/api-keys", wanted)["secret"])


def answered(done: Done) -> Any:
    """The one line of JSON that a command printed."""
    assert (done.status, done.err) == (0, ""), done
    assert done.out.count("\n") == 1
    return json.loads(done.out)


def cells(done: Done) -> list[list[str]]:
    """The rows of the table that a command printed."""
    assert (done.status, done.err) == (0, ""), done
    return [[part.strip() for part in line.strip("│").split("│")] for line in done.out.splitlines() if "│" in line]
