"""`soundmark up --cells 2`: two Audiences under one Core, backed up and restored together."""

import contextlib
import json
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from support.audience.event_delivery import sign_body
from support.audience.event_publisher import new_id
from support.processes.command_server import find_forked_soundmark
from support.processes.up_process import (
    Up,
    clean_environ,
    each_still_there,
    passable_folder,
    refused_up,
    running_up,
    status_of,
    until,
)

from soundmark.cli.demo_filling import RunningService

pytestmark = pytest.mark.xdist_group("backup")

CELLS = ("--port", "0", "--cells", "2")
PROOF = {"X-Svc-Resolution-Proof": "ed25519-v1"}


def soundmark(*arguments: str) -> str:
    """Run a command to its end, and return what it printed."""
    done = run_soundmark(*arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def run_soundmark(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [find_forked_soundmark(), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=clean_environ(), timeout=120)


@contextlib.contextmanager
def operator_of(up: Up) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {up.where['operator_token']}"}
    with httpx2.Client(base_url=up.where["base_url"], headers=headers, timeout=30, trust_env=False) as client:
        yield client


def post(client: httpx2.Client, path: str, body: Any) -> dict[str, Any]:
    answer = client.post(path, json=body)
    assert answer.is_success, answer.text
    made: dict[str, Any] = answer.json()
    return made


@dataclass(frozen=True)
class Measured:
    """An organisation with an integration and a measured Code."""

    tenant: dict[str, str]
    integration: dict[str, Any]
    code: dict[str, Any]

    def deliver(self, client: httpx2.Client, url: str) -> int:
        """Hear the Code once more, and deliver the event there; return the status."""
        resolved = client.get(f"/v1/resolve/{self.code['broadcast_token']}", headers=PROOF).json()
        event = {
            "event_id": new_id("evt_"),
            "integration_id": self.integration["id"],
            "xr_id": self.code["xr_id"],
            "occurred_at": resolved["measurement_proof"]["issued_at"],
            "receiver_class": "phone",
            "measurement_token": new_id("mt_", 32),
            "proof": resolved["measurement_proof"],
        }
        body = json.dumps(event).encode()
        signature = sign_body(body, self.integration["hmac_secret"])
        headers = {"Content-Type": "application/json", "X-Svc-Signature": signature}
        return httpx2.post(url, content=body, headers=headers, trust_env=False).status_code


def measure(client: httpx2.Client, name: str, organization: dict[str, Any] | None = None) -> Measured:
    organization = organization or post(client, "/v1/organizations", {"name": name})
    tenant = {"organization_id": organization["id"]}
    tenant["project_id"] = post(client, "/v1/projects", {**tenant, "name": "On air"})["id"]
    integration = post(client, "/v1/audience/integrations", {**tenant, "mode": "demo", "retention_days": 14})
    request = {
        **tenant,
        "issuer": "Radio",
        "expires_at": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
        "intent": {"type": "link", "action": "open", "resource": {"url": "https://radio.example"}},
        "audience": {"enabled": True, "integration_id": integration["id"]},
    }
    return Measured(tenant, integration, post(client, "/v1/codes", request))


@dataclass(frozen=True)
class Backed:
    """What a deployment of two cells was like, and a backup of it; it has ended."""

    data_dir: Path
    folder: Path
    where: dict[str, Any]
    statuses: list[int]
    counts: list[tuple[int, int]]
    commands: set[str]
    file_mode: int
    while_away: list[int]
    reports: list[int]
    demo_urls: list[str]  # Where `demo --fill` would store the events of each.
    refused: "subprocess.CompletedProcess[str]"  # Naming the cell of an organisation that has one.


@pytest.fixture(scope="module")
def backed_up() -> Iterator[Backed]:
    """A deployment of two cells, in which each has measured, and its backup."""
    with passable_folder() as path, running_up(path / "data", arguments=CELLS) as up:
        up.until_ready()
        with operator_of(up) as client:
            measured = [measure(client, "Radio Nordlicht")]
            named = post(client, "/v1/organizations", {"name": "Cinéma du Port"})
            naming = ("platform", "cell", named["id"], "cell-2", "--data-dir", str(up.data_dir))
            soundmark(*naming)
            measured.append(measure(client, "Cinéma du Port", named))
            refused = run_soundmark(*naming)
            urls = [f"{cell['audience_url']}/v1/events" for cell in up.where["cells"]]
            statuses = [each.deliver(client, url) for each, url in zip(measured, urls, strict=True)]
            statuses += [each.deliver(client, f"{up.where['base_url']}/v1/events") for each in measured]
            statuses.append(measured[0].deliver(client, urls[1]))
            soundmark("backup", str(path / "backup"), "--data-dir", str(up.data_dir))
            soundmark("keys", "rotate", "--no-wait", "--data-dir", str(up.data_dir))
            reports = [
                client.get(f"/v1/audience/reports/{each.integration['id']}", params=each.tenant).json()["events"]
                for each in measured
            ]
            where = up.where
            counts = [_count(cell["audience_database_url"]) for cell in where["cells"]]
            commands = set(each_still_there(up.everything(), lambda process: " ".join(process.cmdline())))
            file_mode = stat.S_IMODE(Path(where["audience_cells_file"]).stat().st_mode)
            databases = [cell["audience_database_url"] for cell in where["cells"]]
            service = RunningService(where["base_url"], where["operator_token"], databases, None)
            demo_urls = [service.database_url_of(each.integration["id"]) for each in measured]
            while_away = _kill_and_return(up, client, measured)
        up.stop()
        yield Backed(
            up.data_dir,
            path / "backup",
            where,
            statuses,
            counts,
            commands,
            file_mode,
            while_away,
            reports,
            demo_urls,
            refused,
        )


def _count(database_url: str) -> tuple[int, int]:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT (SELECT count(*) FROM integrations), (SELECT count(*) FROM events)").fetchone()
    assert row is not None
    return row[0], row[1]


def _kill_and_return(up: Up, client: httpx2.Client, measured: list[Measured]) -> list[int]:
    """Kill the second cell's Audience; return how lists are answered until it is there again."""
    seen = each_still_there(up.everything(), lambda process: (process, process.cmdline()))
    (process,) = [each for each, line in seen if _serves(line, up.where["cells"][1]["audience_url"])]
    process.suspend()
    lists = [client.get("/v1/audience/integrations", params=each.tenant).status_code for each in measured]
    process.kill()
    until(lambda: status_of(up.where["cells"][1]["audience_url"] + "/readyz") == 200, 60)
    return [*lists, client.get("/v1/audience/integrations", params=measured[1].tenant).status_code]


def _serves(command: list[str], url: str) -> bool:
    return "serve" in command and "audience" in command and url.rpartition(":")[2] in command


def test_up_json_names_both_cells_and_keeps_the_first(backed_up: Backed) -> None:
    where = backed_up.where
    assert [cell["name"] for cell in where["cells"]] == ["main", "cell-2"]
    first = {name: where[name] for name in ("audience_url", "audience_database_url")}
    assert where["cells"][0] == {"name": "main", **first}
    assert len({cell["audience_database_url"] for cell in where["cells"]}) == 2
    assert set(where["metrics_urls"]) == {"core", "audience", "audience-cell-2", "audio", "console"}
    assert backed_up.file_mode == 0o600, "it holds the credential"


def test_each_cell_measures_for_its_own_organisations(backed_up: Backed) -> None:
    """Directly and through Core; a foreign cell knows no such integration."""
    assert backed_up.statuses == [201, 201, 201, 201, 401]
    assert backed_up.counts == [(1, 2), (1, 2)]
    assert backed_up.reports == [2, 2]
    assert backed_up.demo_urls == [cell["audience_database_url"] for cell in backed_up.where["cells"]]


def test_no_secret_of_a_cell_is_on_a_command_line(backed_up: Backed) -> None:
    secrets = [
        psycopg.conninfo.conninfo_to_dict(cell["audience_database_url"])["password"]
        for cell in backed_up.where["cells"]
    ]
    secrets += [cell["credential"] for cell in json.loads((backed_up.data_dir / "cells.json").read_text())]
    assert not [secret for secret in secrets for command in backed_up.commands if secret in command]


def test_a_cell_that_hangs_fails_its_own_organisations_and_comes_back(backed_up: Backed) -> None:
    assert backed_up.while_away == [200, 503, 200]


def test_a_data_dir_does_not_start_with_fewer_cells(backed_up: Backed) -> None:
    refused = refused_up(backed_up.data_dir, "--port", "0")
    assert refused == "soundmark: the data dir has 2 cells: start it with --cells 2"


def test_the_cell_of_an_organisation_is_not_named_again(backed_up: Backed) -> None:
    assert (backed_up.refused.returncode, backed_up.refused.stdout) == (1, "")
    (line,) = backed_up.refused.stderr.splitlines()
    assert line.endswith("is in the cell cell-2, and stays there")


def test_a_restored_deployment_has_both_cells(backed_up: Backed) -> None:
    manifest = json.loads((backed_up.folder / "manifest.json").read_text())
    assert list(manifest["rows"]) == ["core", "audience", "audience-cell-2"]
    with passable_folder() as path:
        done = soundmark("restore", str(backed_up.folder), "--data-dir", str(path / "data"))
        assert done.rstrip().endswith("--cells 2")
        assert "has 2 cells: start it with --cells 2" in refused_up(path / "data", "--port", "0")
        with running_up(path / "data", arguments=CELLS) as up:
            up.until_ready()
            assert [_count(cell["audience_database_url"]) for cell in up.where["cells"]] == [(1, 2), (1, 2)]
            with operator_of(up) as client:
                for organization in client.get("/v1/organizations").json()["data"]:
                    usage = client.get("/v1/usage", params={"organization_id": organization["id"]}).json()
                    assert [mode["events"] for mode in usage["audience"]["modes"]] == [2]
