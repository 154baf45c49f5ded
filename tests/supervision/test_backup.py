"""`soundmark backup` and `soundmark restore` on real deployments: consistent under traffic, complete, and careful."""

import contextlib
import hashlib
import hmac
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from soundmark_sdk import Receiver
from support.processes.command_server import find_forked_soundmark
from support.processes.up_process import SOUNDMARK, Up, clean_environ, passable_folder, running_up, until

from soundmark.embedded import backup, dumps
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import migrate

pytestmark = pytest.mark.xdist_group("backup")

_VACUUMS = "SELECT 1 FROM pg_stat_activity WHERE datname = 'backup_core' AND backend_type = 'autovacuum worker'"
# For longer than the time limits of the fixture `under_way`: no session of the backup was busy since.
_WAITS_LONG = """
    SELECT 1
     WHERE NOT EXISTS (SELECT FROM pg_stat_activity
                        WHERE datname = 'backup_core'
                          AND application_name IN ('soundmark-backup', 'pg_dump')
                          AND state_change > clock_timestamp() - interval '1.5 s')
"""
PROOF = {"X-Svc-Resolution-Proof": "ed25519-v1"}


def soundmark(*arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    environ = clean_environ({f"SOUNDMARK_{name}": value for name, value in settings.items()})
    command = [find_forked_soundmark(), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environ, timeout=120)


def refusal(*arguments: str, **settings: str) -> str:
    done = soundmark(*arguments, **settings)
    assert (done.returncode, done.stdout) == (1, ""), done
    (line,) = done.stderr.strip().splitlines()
    return line


@dataclass
class Traffic:
    """Everything that a broadcaster does, repeated until it is stopped."""

    up: Up
    organization_id: str = ""
    project_id: str = ""
    integration: dict[str, Any] = field(default_factory=dict)
    rounds_count: int = 0

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.up.where['operator_token']}"}
        self.client = httpx2.Client(base_url=self.up.where["base_url"], headers=headers, timeout=30, trust_env=False)
        self.organization_id = self.post("/v1/organizations", {"name": "Radio Nordlicht"})["id"]
        tenant = {"organization_id": self.organization_id}
        self.project_id = self.post("/v1/projects", {**tenant, "name": "Morning show"})["id"]
        self.tenant = {**tenant, "project_id": self.project_id}
        request = {**self.tenant, "mode": "demo", "retention_days": 14}
        self.integration = self.post("/v1/audience/integrations", request)

    def post(self, path: str, body: dict[str, Any] | None = None, **query: str) -> dict[str, Any]:
        answer = self.client.post(path, json=body, params=query)
        assert answer.is_success, answer.text
        return answer.json()

    def issue(self, **changes: Any) -> dict[str, Any]:
        expires_at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        intent = {"type": "link", "action": "open", "resource": {"url": "https://radio.example"}}
        return self.post(
            "/v1/codes", {**self.tenant, "issuer": "Radio", "expires_at": expires_at, "intent": intent, **changes}
        )

    def keep_on(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            code = self.issue()
            self.post("/v1/campaigns", {**self.tenant, "name": f"Round {self.rounds_count}"})
            other = self.post("/v1/audience/integrations", {**self.tenant, "mode": "demo", "retention_days": 1})
            self.post(f"/v1/audience/integrations/{other['id']}/revoke", **self.tenant)
            self.post(f"/v1/codes/{code['xr_id']}/revoke", organization_id=self.organization_id)
            self.rounds_count += 1


@contextlib.contextmanager
def busy(traffic: Traffic) -> Iterator[None]:
    stopped = threading.Event()
    thread = threading.Thread(target=traffic.keep_on, args=(stopped,))
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(60)
        assert not thread.is_alive()


def everything(client: httpx2.Client, path: str, **query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(path, params={**query, "limit": 100, **({"cursor": cursor} if cursor else {})}).json()
        found += page["data"]
        cursor = page["next_cursor"]
    return found


def deliver_event(up: Up, traffic: Traffic, code: dict[str, Any]) -> httpx2.Response:
    """Resolve a Code that is measured and deliver the event, signed with the integration's first secret."""
    resolved = httpx2.get(f"{up.where['base_url']}/v1/resolve/{code['broadcast_token']}", headers=PROOF).json()
    event = {
        "event_id": "evt_" + "e" * 22,
        "integration_id": traffic.integration["id"],
        "xr_id": code["xr_id"],
        "occurred_at": resolved["measurement_proof"]["issued_at"],
        "receiver_class": "phone",
        "measurement_token": "mt_" + "m" * 43,
        "country": None,
        "proof": resolved["measurement_proof"],
    }
    body = json.dumps(event).encode()
    mac = hmac.new(traffic.integration["hmac_secret"].encode(), body, hashlib.sha256).hexdigest()
    headers = {"content-type": "application/json", "x-svc-signature": f"sha256={mac}"}
    return httpx2.post(f"{up.where['base_url']}/v1/events", content=body, headers=headers)


@dataclass
class BackedUp:
    """The data of a busy deployment."""

    folder: Path
    traffic: Traffic
    kept: dict[str, Any]  # A Code that was issued before and not revoked.
    measured: dict[str, Any]
    manifest: dict[str, Any]
    refused_restore: str  # Of the backup into the deployment that it is of, while that ran.


@pytest.fixture(scope="module")
def backed_up() -> Iterator[BackedUp]:
    """A deployment that was backed up while it was busy, and has ended."""
    with passable_folder() as path:
        with running_up(path / "data") as up:
            traffic = Traffic(up.until_ready())
            many = ("platform", "entitle", traffic.organization_id, "--monthly-codes", "1000000")
            assert soundmark(*many, CORE_DATABASE_URL=up.where["core_database_url"]).returncode == 0
            kept = traffic.issue()
            measured = traffic.issue(audience={"enabled": True, "integration_id": traffic.integration["id"]})
            with contextlib.closing(traffic.client), busy(traffic):
                before = traffic.rounds_count
                while traffic.rounds_count < before + 3:
                    threading.Event().wait(0.05)
                done = soundmark("backup", str(path / "backup"), "--data-dir", str(up.data_dir))
            assert (done.returncode, done.stderr) == (0, ""), done
            assert "1 organisations" in done.stdout
            refused_restore = refusal("restore", str(path / "backup"), "--data-dir", str(up.data_dir))
        manifest = json.loads((path / "backup" / "manifest.json").read_text())
        yield BackedUp(path / "backup", traffic, kept, measured, manifest, refused_restore)


def test_a_busy_deployment_goes_on_elsewhere(backed_up: BackedUp) -> None:
    """Every Code verifies, the audit chain holds, sealed values open, and every operation works."""
    rows, traffic = backed_up.manifest["rows"], backed_up.traffic
    with passable_folder() as path:
        done = soundmark("restore", str(backed_up.folder), "--data-dir", str(path / "data"))
        assert (done.returncode, done.stderr) == (0, ""), done
        with running_up(path / "data") as up:
            up.until_ready()
            headers = {"Authorization": f"Bearer {up.where['operator_token']}"}
            tenant = {"organization_id": traffic.organization_id}
            with httpx2.Client(base_url=up.where["base_url"], headers=headers, timeout=30, trust_env=False) as client:
                codes = everything(client, "/v1/codes", **tenant)
                assert len(codes) == rows["core"]["codes"] >= 5
                # A detail is compared with its signature before it is returned.
                details = [client.get(f"/v1/codes/{code['xr_id']}", params=tenant).json() for code in codes]
                assert [detail["xr_id"] for detail in details] == [code["xr_id"] for code in codes]
                with contextlib.closing(Receiver(up.where["base_url"])) as receiver:
                    assert receiver.resolve(backed_up.kept["broadcast_token"]).intent.type == "link"
                revoked = next(code for code in codes if code["status"] == "revoked")
                answer = client.get(f"/v1/resolve/{revoked['broadcast_token']}", headers=PROOF)
                assert answer.status_code == 404

                until_sealed(client, tenant)
                entries = everything(client, "/v1/audit-log", **tenant)
                assert len(entries) >= rows["core"]["audit_entries"]

                # Audience holds what Core's log records: the two snapshots belong together.
                integrations = everything(client, "/v1/audience/integrations", **tenant, project_id=traffic.project_id)
                assert len(integrations) == rows["audience"]["integrations"]
                made = [entry for entry in entries if entry["action"] == "audience.integration_provisioning"]
                assert sum(entry["outcome"] == "completed" for entry in made) <= len(integrations) <= len(made)

                assert deliver_event(up, traffic, backed_up.measured).status_code == 201
                traffic.client = client
                assert traffic.issue()["status"] == "active"
                # Others may have seen more of the transparency log than the backup has.
                log = client.get("/v1/log").json()
                assert (log["state"], log["stopped_reason"]) == ("stopped", "restored")


def until_sealed(client: httpx2.Client, tenant: dict[str, str]) -> None:
    for _ in range(200):
        found = client.get("/v1/audit-log/verification", params=tenant).json()
        assert found["first_broken"] is None
        if found["verified"] and not found["unsealed"]:
            return
        threading.Event().wait(0.05)
    raise AssertionError("the log is not sealed")


def test_a_backup_is_for_its_owner_alone(backed_up: BackedUp) -> None:
    """It holds both master keys."""
    assert backed_up.folder.stat().st_mode & 0o777 == 0o700
    assert {file.name: file.stat().st_mode & 0o777 for file in backed_up.folder.iterdir()} == dict.fromkeys(
        ("audience-master.key", "audience.dump", "core-master.key", "core.dump", "manifest.json"), 0o600
    )


def test_an_altered_backup_is_not_restored(backed_up: BackedUp, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o700)
    for file in backed_up.folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    dump = copy / "audience.dump"
    dump.write_bytes(dump.read_bytes()[:-1] + b"x")
    assert f"{dump} does not match the manifest" in refusal("restore", str(copy), "--data-dir", str(tmp_path / "new"))
    dump.unlink()
    assert f"{dump} cannot be read" in refusal("restore", str(copy), "--data-dir", str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_an_existing_folder_is_not_written_to(backed_up: BackedUp) -> None:
    settings = {
        "CORE_DATABASE_URL": "postgresql://x@127.0.0.1:9/a",
        "AUDIENCE_DATABASE_URL": "postgresql://y@127.0.0.1:9/b",
    }
    deployment = backup.Deployment({"core": Secret(settings["CORE_DATABASE_URL"]), "audience": Secret("")}, {})
    with pytest.raises(backup.BackupRefused, match="already exists"):
        backup.make_backup(deployment, backed_up.folder)


@dataclass
class Databases:
    """Two databases, as an operator creates them for a deployment."""

    core: Secret
    audience: Secret

    @property
    def urls(self) -> dict[backup.Part, Secret]:
        return {"core": self.core, "audience": self.audience}

    @property
    def settings(self) -> dict[str, str]:
        return {"CORE_DATABASE_URL": self.core.reveal(), "AUDIENCE_DATABASE_URL": self.audience.reveal()}


@pytest.fixture
def databases(cluster: RunningCluster) -> Databases:
    """Two databases that were never migrated."""
    with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as connection:
        for name in ("backup_core", "backup_audience"):
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
    return Databases(*(cluster.create_role_and_database(name) for name in ("backup_core", "backup_audience")))


def restore(backed_up: BackedUp, databases: Databases) -> None:
    done = soundmark("restore", str(backed_up.folder), **databases.settings)
    assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.parametrize("is_migrated", [False, True])
def test_a_restore_into_databases_of_the_environment(
    backed_up: BackedUp, databases: Databases, tmp_path: Path, *, is_migrated: bool
) -> None:
    """And a second backup from there: Core's role reads every row, and the second backup equals the first."""
    if is_migrated:
        for part, url in databases.urls.items():
            migrate(url, f"soundmark.{part}")
    restore(backed_up, databases)
    with psycopg.connect(databases.core.reveal()) as connection:  # Plans would be guesses otherwise.
        known = connection.execute("SELECT count(*) > 0 FROM pg_stats WHERE tablename = 'signing_keys'")
        assert known.fetchall() == [(True,)]
    key = (backed_up.folder / "core-master.key").read_text().strip()
    done = soundmark("backup", str(tmp_path / "again"), MASTER_KEY=key, **databases.settings)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert json.loads((tmp_path / "again" / "manifest.json").read_text())["rows"] == backed_up.manifest["rows"]


def test_a_database_that_holds_something_is_left_as_it_is(backed_up: BackedUp, databases: Databases) -> None:
    restore(backed_up, databases)
    before = {part: dumps.count_rows(url) for part, url in databases.urls.items()}
    assert "Core's database is not empty" in refusal("restore", str(backed_up.folder), **databases.settings)
    assert {part: dumps.count_rows(url) for part, url in databases.urls.items()} == before


def test_a_database_that_is_in_use_is_left_as_it_is(backed_up: BackedUp, databases: Databases) -> None:
    with psycopg.connect(databases.audience.reveal()):
        message = refusal("restore", str(backed_up.folder), **databases.settings)
    assert "backup_audience is in use (1 other connections)" in message
    assert dumps.count_rows(databases.core) == {}


def test_a_database_that_postgresql_tidies_is_unused(cluster: RunningCluster, databases: Databases) -> None:
    """An autovacuum worker is in `pg_stat_activity` as clients are."""
    slow = "autovacuum_vacuum_threshold = 0, autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1"
    with psycopg.connect(databases.core.reveal(), autocommit=True) as connection:
        connection.execute(f"CREATE TABLE old WITH ({slow}) AS SELECT generate_series(1, 20000) AS n".encode())
        connection.execute("DELETE FROM old")
    with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET autovacuum_naptime = 1")
        connection.execute("SELECT pg_reload_conf()")
        try:
            for _ in range(600):
                if connection.execute(_VACUUMS).fetchone() is not None:
                    break
                threading.Event().wait(0.05)
            dumps.require_unused(databases.core)
            assert connection.execute(_VACUUMS).fetchone() is not None
        finally:
            connection.execute("ALTER SYSTEM RESET autovacuum_naptime")
            connection.execute("SELECT pg_reload_conf()")


def test_a_client_that_is_about_to_leave_is_waited_for(databases: Databases) -> None:
    """PostgreSQL lists a client for a moment after it has gone."""
    leaving = psycopg.connect(databases.core.reveal())
    timer = threading.Timer(0.5, leaving.close)
    timer.start()
    dumps.require_unused(databases.core)
    timer.join()
    assert leaving.closed


@pytest.mark.parametrize("dies_after", ["empty", "audience"])
def test_a_restore_that_was_cut_short_is_repeated(backed_up: BackedUp, databases: Databases, dies_after: str) -> None:
    """Its partial result has no owner."""
    for url in databases.urls.values():
        dumps.empty(url)
    if dies_after == "audience":
        dumps.restore(backed_up.folder / "audience.dump", databases.audience)
    restore(backed_up, databases)
    assert {part: dumps.count_rows(url) for part, url in databases.urls.items()} == backed_up.manifest["rows"]


def test_a_key_that_opens_nothing_prevents_the_backup(
    backed_up: BackedUp, databases: Databases, tmp_path: Path
) -> None:
    """Otherwise that would be found out too late."""
    restore(backed_up, databases)
    message = refusal("backup", str(tmp_path / "no"), MASTER_KEY="A" * 43, **databases.settings)
    assert message == "soundmark: SOUNDMARK_MASTER_KEY does not open the sealed values in Core's database"
    assert list(tmp_path.iterdir()) == []


@dataclass
class UnderWay:
    """A backup that does not get on until `rival` ends its transaction."""

    process: "subprocess.Popen[bytes]"
    watcher: psycopg.Connection[Any]
    rival: psycopg.Connection[Any]
    folder: Path
    settings: dict[str, str]


@pytest.fixture
def under_way(backed_up: BackedUp, databases: Databases, cluster: RunningCluster, tmp_path: Path) -> Iterator[UnderWay]:
    """A backup into `new` that waits for a lock on a table, which the caller may release.

    Its role has the time limits that the guide wants behind a pooler, but shorter ones.
    """
    restore(backed_up, databases)
    limits = ("statement_timeout", "idle_in_transaction_session_timeout")
    waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'pg_dump' AND wait_event_type = 'Lock'"
    key = (backed_up.folder / "core-master.key").read_text().strip()
    settings = {**databases.settings, "MASTER_KEY": key}
    environ = clean_environ({f"SOUNDMARK_{name}": value for name, value in settings.items()})
    command = [*SOUNDMARK, "backup", str(tmp_path / "new")]
    with (
        psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as watcher,
        psycopg.connect(cluster.superuser_url_of("backup_core").reveal()) as rival,
    ):
        for limit in limits:
            watcher.execute(f"ALTER ROLE backup_core SET {limit} = '1s'".encode())
        rival.execute("LOCK TABLE codes IN ACCESS EXCLUSIVE MODE")
        with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            until(lambda: watcher.execute(waiting).fetchone() is not None, 60)
            yield UnderWay(process, watcher, rival, tmp_path / "new", settings)
            process.kill()
        watcher.execute("ALTER ROLE backup_core RESET ALL")


def test_a_backup_that_is_ended_leaves_nothing_behind(under_way: UnderWay) -> None:
    """Such as by a time limit of its timer: what it had written opens much, and nobody would remove it."""
    under_way.process.terminate()
    assert under_way.process.wait(30) == -signal.SIGTERM
    assert list(under_way.folder.parent.iterdir()) == []


def test_a_second_backup_into_a_folder_is_refused_and_the_first_is_whole(under_way: UnderWay) -> None:
    message = refusal("backup", str(under_way.folder), **under_way.settings)
    assert message == f"soundmark: another backup into {under_way.folder} is under way; name another folder"
    under_way.rival.rollback()
    assert under_way.process.wait(60) == 0
    assert backup.read_backup(under_way.folder).folder == under_way.folder
    assert list(under_way.folder.parent.iterdir()) == [under_way.folder]
    assert not list(under_way.folder.glob("*.lock"))


def test_time_limits_of_the_role_do_not_end_a_backup(under_way: UnderWay) -> None:
    """Its snapshot is idle, and its statements wait, for as long as the largest table takes."""
    until(lambda: under_way.watcher.execute(_WAITS_LONG).fetchone() is not None, 30)
    under_way.rival.rollback()
    assert under_way.process.wait(60) == 0


def test_what_a_killed_backup_left_is_replaced(under_way: UnderWay) -> None:
    under_way.process.kill()
    under_way.process.wait(30)
    under_way.rival.rollback()
    assert (under_way.folder.parent / "new.unfinished" / "core.dump").exists()
    assert soundmark("backup", str(under_way.folder), **under_way.settings).returncode == 0
    assert list(under_way.folder.parent.iterdir()) == [under_way.folder]


def test_a_running_deployment_is_not_overwritten_by_a_restore(backed_up: BackedUp) -> None:
    assert f"already running on {backed_up.folder.parent / 'data'}" in backed_up.refused_restore


def test_every_table_of_tenants_can_be_backed_up(databases: Databases) -> None:
    """Without the policy, a table's rows would be missing from every backup."""
    migrate(databases.core, "soundmark.core")
    with psycopg.connect(databases.core.reveal()) as connection:
        tables = connection.execute("SELECT relname FROM pg_class WHERE relrowsecurity ORDER BY relname").fetchall()
        policies = connection.execute(
            "SELECT tablename FROM pg_policies WHERE cmd = 'SELECT' AND qual = 'is_backup()' ORDER BY tablename"
        ).fetchall()
    assert tables == policies
    assert len(tables) > 10
