"""The configurations in deploy/haproxy, run by HAProxy itself, with small servers behind it."""

import contextlib
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2
import pytest
from support.deployment.commands import DEPLOY, ROOT
from support.deployment.haproxy import (
    Server,
    check,
    listen,
    port_of,
    running_haproxy,
    running_server,
    write_certificate,
    write_configuration,
)
from support.processes.up_process import until

PUBLIC: Final = ("haproxy/common.cfg", "haproxy/public.cfg", "haproxy/servers.cfg")
KEY: Final = {"Idempotency-Key": "a-key-of-this-test"}
CONSOLE: Final = {"Host": "console.example.org"}


@dataclass(frozen=True)
class Proxy:
    client: httpx2.Client
    plain_url: str
    cores: list[Server]
    console: Server


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    """The public proxy with three Cores and a console behind it."""
    certificate = tmp_path / "soundmark.pem"
    write_certificate(certificate)
    with contextlib.ExitStack() as stack:
        tls, plain, metrics = (stack.enter_context(listen()) for _ in range(3))
        cores = [stack.enter_context(running_server(f"core-{number}")) for number in (1, 2, 3)]
        console = stack.enter_context(running_server("console"))
        replacing = {
            "bind :443": f"bind fd@{tls.fileno()}",
            "bind :80": f"bind fd@{plain.fileno()}",
            "bind 127.0.0.1:8404": f"bind fd@{metrics.fileno()}",
            "/etc/haproxy/soundmark.pem": str(certificate),
            **{f"10.77.0.1{number}:8080": f"127.0.0.1:{core.port}" for number, core in enumerate(cores, 1)},
            **{f"10.77.0.1{number}:8083": f"127.0.0.1:{console.port}" for number in (1, 2, 3)},
        }
        files = write_configuration(tmp_path, *PUBLIC, replacing=replacing)
        check(files, tls, plain, metrics)
        stack.enter_context(running_haproxy(files, tls, plain, metrics))
        context = ssl.create_default_context(cafile=str(certificate))
        context.check_hostname = False
        # A connection for each request: HAProxy closes a used one without a word where it would answer 502.
        client = httpx2.Client(
            base_url=f"https://127.0.0.1:{port_of(tls)}",
            verify=context,
            trust_env=False,
            headers={"Connection": "close"},
        )
        stack.enter_context(client)
        yield Proxy(client, f"http://127.0.0.1:{port_of(plain)}", cores, console)


def seen(proxy: Proxy) -> int:
    return sum(len(core.seen) for core in proxy.cores)


def test_without_a_ready_core_clients_read_a_problem_and_when_to_retry(proxy: Proxy) -> None:
    for core in proxy.cores:
        core.is_ready = False
    until(lambda: proxy.client.get("/v1/keys").status_code == 503, 10)
    answer = proxy.client.get("/v1/keys")
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.headers["retry-after"], answer.headers["cache-control"]) == ("2", "no-store")
    assert answer.json()["status"] == 503
    assert answer.json()["code"] == "database_unavailable"
    assert proxy.client.get("/", headers=CONSOLE).text == "console", "which says what is wrong"
    proxy.cores[1].is_ready = True
    until(lambda: proxy.client.get("/v1/keys").text == "core-2", 10)


def test_only_what_cannot_happen_twice_is_sent_to_another_core(proxy: Proxy) -> None:
    for core in proxy.cores:
        core.hangs_up = True
    answer = proxy.client.post("/v1/organizations", json={})
    assert (answer.status_code, answer.headers["content-type"], seen(proxy)) == (502, "application/problem+json", 1)
    assert "code" not in answer.json(), "nobody knows what happened"
    proxy.client.post("/v1/codes", json={}, headers=KEY)
    assert seen(proxy) > 2
    for core in proxy.cores[1:]:
        core.hangs_up = False
    assert proxy.client.get("/v1/keys").status_code == 200


def test_core_reads_the_address_of_the_client_and_nothing_that_the_client_wrote(proxy: Proxy) -> None:
    proxy.client.get("/v1/keys", headers={"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"})
    ((_, _, headers),) = [request for core in proxy.cores for request in core.seen]
    assert headers["x-forwarded-for"] == ["127.0.0.1"]
    assert "forwarded" not in headers


def test_each_name_leads_to_its_component_over_tls_only(proxy: Proxy) -> None:
    assert proxy.client.get("/v1/keys").text.startswith("core-")
    assert proxy.client.get("/", headers=CONSOLE).text == "console"
    assert proxy.client.get("/readyz").status_code == 404, "which dependency is away is for the operator"
    plain = httpx2.get(f"{proxy.plain_url}/v1/keys", trust_env=False)
    assert (plain.status_code, plain.headers["location"][:8]) == (308, "https://")


def test_port_5000_leads_to_the_primary_alone(tmp_path: Path) -> None:
    """`/primary` of Patroni decides, and connections to what is no longer the primary are closed."""
    with contextlib.ExitStack() as stack:
        primary = stack.enter_context(listen())
        servers = [stack.enter_context(running_server(f"postgresql-{number}")) for number in (1, 2, 3)]
        replacing = {"bind 127.0.0.1:5000": f"bind fd@{primary.fileno()}"}
        for number, server in enumerate(servers, 1):
            server.is_ready = number == 1
            old = f"10.77.0.1{number}:5432 check port 8008"
            replacing[old] = f"127.0.0.1:{server.port} check port {server.port}"
        files = write_configuration(tmp_path, "haproxy/common.cfg", "haproxy/database.cfg", replacing=replacing)
        check(files, primary)
        stack.enter_context(running_haproxy(files, primary))
        client = stack.enter_context(httpx2.Client(base_url=f"http://127.0.0.1:{port_of(primary)}", trust_env=False))
        until(lambda: names_of(client) == "postgresql-1", 10)
        servers[0].is_ready, servers[2].is_ready = False, True
        until(lambda: names_of(client) == "postgresql-3", 10)


def names_of(client: httpx2.Client) -> str:
    with contextlib.suppress(httpx2.TransportError):
        return client.get("/").text
    return ""


def test_the_folder_of_the_guide_is_valid(tmp_path: Path) -> None:
    """HAProxy reads its files in the order of their names; on each machine one may be both proxies."""
    write_certificate(tmp_path / "soundmark.pem")
    replacing = {"/etc/haproxy/soundmark.pem": str(tmp_path / "soundmark.pem")}
    write_configuration(tmp_path, *PUBLIC, "haproxy/database.cfg", replacing=replacing)
    check(["-f", str(tmp_path)])
    guide = (ROOT / "docs" / "operating" / "available.md").read_text("utf-8")
    assert {path.name for path in (DEPLOY / "haproxy").iterdir()} == set(re.findall(r"(?<=[`/])\w+\.cfg", guide))
