"""`soundmark serve`: one component by itself, as in production, with one process or several."""

import contextlib
import json
import signal
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import psutil
import psycopg
import pytest
from starlette.responses import Response
from support.api.core_settings import MASTER_KEY
from support.processes.up_process import has_ended, status_of, until

from soundmark.console.sealed_cookies import CookieJar
from soundmark.console.session import Session
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.http.server.sockets import reserve_port
from soundmark.kit.postgres.migrations import migrate

from .serving import AUDIO, Serving, ended, serving


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_component_cleanly(signum: signal.Signals) -> None:
    with serving("audio", AUDIO) as audio:
        assert status_of(audio.metrics_url) == 200
        audio.process.send_signal(signum)
        assert audio.process.wait(30) == 0


def test_a_component_that_drains_serves_on_but_is_not_ready() -> None:
    """A load balancer that does not retry must take it out before it refuses connections."""
    with serving("audio", {**AUDIO, "SOUNDMARK_DRAIN_S": "600"}) as audio:
        audio.process.terminate()
        until(lambda: status_of(f"{audio.url}/readyz") == 503, 30)
        answer = httpx2.get(f"{audio.url}/readyz?scope=process", trust_env=False)
        assert (answer.status_code, answer.json()["unavailable"]) == (503, ["draining"])
        assert answer.headers["connection"] == "close", "or the next request would find the process gone"
        assert status_of(f"{audio.url}/healthz") == 200
        audio.process.terminate()
        assert audio.process.wait(30) == 0


def test_a_component_ends_when_it_has_drained() -> None:
    with serving("audio", {**AUDIO, "SOUNDMARK_DRAIN_S": "1"}, "--workers", "2") as audio:
        audio.process.terminate()
        assert audio.process.wait(60) == 0


def test_metrics_listen_where_they_are_told_to() -> None:
    """Nothing outside of a container reaches its loopback addresses."""
    with serving("audio", {**AUDIO, "SOUNDMARK_METRICS_HOST": "127.0.0.2"}) as audio:
        assert status_of(audio.metrics_url.replace("127.0.0.1", "127.0.0.2")) == 200
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(audio.metrics_url, trust_env=False)


@pytest.mark.parametrize(
    "begun",
    [
        b"GET /healthz HTTP/1.1\r\nHost: audio\r\nX-Endless: ",
        b"POST /render HTTP/1.1\r\nHost: audio\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX-Endless: ",
    ],
    ids=["header", "trailer"],
)
def test_a_peer_that_sends_an_endless_head_is_cut_off(begun: bytes) -> None:
    """Otherwise anybody could fill the memory of the process, because the parser keeps the whole head."""
    with serving("audio", AUDIO) as audio:
        where = ("127.0.0.1", int(audio.url.rpartition(":")[2]))
        with socket.create_connection(where, timeout=30) as connection, pytest.raises(ConnectionError):
            connection.sendall(begun + b"x" * 64 * 1024 * 1024)
        with socket.create_connection(where, timeout=30) as connection:
            longest = b"x" * 60 * 1024
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: audio\r\nX-Long: " + longest + b"\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_a_port_in_use_is_refused_in_one_line() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        done = ended("audio", "--port", port, environ=AUDIO)
    assert done.returncode == 1
    assert done.stderr == f"soundmark: 127.0.0.1:{port} is in use by another program\n"


def test_two_deployments_do_not_share_a_port() -> None:
    with serving("audio", AUDIO) as audio:
        port = audio.url.rpartition(":")[2]
        done = ended("audio", "--port", port, environ=AUDIO)
    assert done.returncode == 1
    assert "is in use by another program" in done.stderr


def test_several_processes_share_a_port_and_add_up_their_metrics() -> None:
    def rendered() -> float:
        lines = httpx2.get(audio.metrics_url, trust_env=False).text.splitlines()
        return sum(float(line.split()[1]) for line in lines if line.startswith("soundmark_audio_renders_total{"))

    with serving("audio", AUDIO, "--workers", "2") as audio:
        parent = psutil.Process(audio.process.pid)
        until(lambda: len(_listening(parent)) == 2, 30)
        for count in range(1, 9):
            answer = httpx2.post(
                f"{audio.url}/render",
                json={"frame": "XRC1:brd_AAAAAAAAAAAAAAAA", "protocol": 5},
                headers={"authorization": f"Bearer {AUDIO['SOUNDMARK_AUDIO_CREDENTIAL']}"},
                trust_env=False,
            )
            assert answer.status_code == 200
            assert rendered() == count

        killed = _listening(parent)[0]
        killed.kill()
        until(lambda: len([process for process in _listening(parent) if process != killed]) == 2, 30)
        assert rendered() == 8, "the killed process's counts are kept"

        children = parent.children()
        audio.process.terminate()
        assert audio.process.wait(30) == 0
        assert all(has_ended(child) for child in children)


def test_resolutions_of_several_core_processes_add_up_and_the_present_state_of_a_dead_one_is_forgotten(
    cluster: RunningCluster,
) -> None:
    url = cluster.create_role_and_database("core_of_serve")
    migrate(url, "soundmark.core")
    environ = {
        "SOUNDMARK_BASE_URL": "http://core.test",
        "SOUNDMARK_CORE_DATABASE_URL": url.reveal(),
        "SOUNDMARK_MASTER_KEY": MASTER_KEY,
        "SOUNDMARK_AUDIO_URL": "http://127.0.0.1:9",
        "SOUNDMARK_AUDIENCE_URL": "http://127.0.0.1:9",
        "SOUNDMARK_AUDIENCE_CREDENTIAL": "a-credential-of-audience",
        **AUDIO,
    }

    def read_metrics() -> list[str]:
        return httpx2.get(core.metrics_url, trust_env=False).text.splitlines()

    def resolutions() -> dict[str, float]:
        lines = read_metrics()
        samples = [line.split() for line in lines if line.startswith("soundmark_resolutions_total{")]
        return {name.split('"')[1]: float(value) for name, value in samples if float(value)}

    def resolve(method: str, token: str) -> int:
        # A new connection each time: the kernel gives it to either process.
        return httpx2.request(method, f"{core.url}/v1/resolve/{token}", trust_env=False).status_code

    with serving(
        "core", environ, "--workers", "2", is_ready=lambda found: status_of(f"{found.url}/healthz") == 200
    ) as core:
        parent = psutil.Process(core.process.pid)
        until(lambda: len(_listening(parent)) == 2, 30)
        assert {resolve("GET", f"brd_{number:016}") for number in range(24)} == {404}
        assert {resolve("DELETE", "brd_") for _ in range(8)} == {405}
        assert resolutions() == {"code_unavailable": 24, "refused": 8}
        assert status_of(f"{core.url}/metrics") == 404
        log_state = [line.split()[0] for line in read_metrics() if line.startswith("soundmark_log_")]
        assert log_state == ["soundmark_log_stopped", "soundmark_log_waiting_entries"], "without a worker, too"

        killed, other = _listening(parent)
        folder = Path(killed.environ()["PROMETHEUS_MULTIPROC_DIR"])
        present_state = [folder / f"gauge_livemostrecent_{process.pid}.db" for process in (killed, other)]
        assert all(file.exists() for file in present_state)
        killed.kill()
        until(lambda: len([process for process in _listening(parent) if process != killed]) == 2, 30)
        assert [file.exists() for file in present_state] == [False, True]
        assert resolutions() == {"code_unavailable": 24, "refused": 8}


def _listening(parent: psutil.Process) -> list[psutil.Process]:
    found = []
    for child in parent.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            states = [connection.status for connection in child.net_connections("tcp")]
            if states.count(psutil.CONN_LISTEN) == 2:
                found.append(child)
    return found


def test_audience_is_ready_when_its_database_is_there_and_current(cluster: RunningCluster) -> None:
    name = "audience_of_serve"
    url = cluster.create_role_and_database(name)
    migrate(url, "soundmark.audience")
    environ = {
        "SOUNDMARK_AUDIENCE_DATABASE_URL": url.reveal(),
        "SOUNDMARK_AUDIENCE_CREDENTIAL": "a-credential-of-audience",
        "SOUNDMARK_MASTER_KEY": "A" * 43,
    }
    with serving("audience", environ) as audience:

        def answer() -> tuple[int, object]:
            response = httpx2.get(f"{audience.url}/readyz", trust_env=False)
            return response.status_code, response.json()["unavailable"]

        # A readiness answer is reused for a second.
        outdated = away = (503, ["database"])
        ready = (200, [])
        with psycopg.connect(url.reveal(), autocommit=True) as connection:
            assert answer() == ready
            current = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            connection.execute("UPDATE alembic_version SET version_num = '0000'")
            until(lambda: answer() == outdated, 30)
            connection.execute("UPDATE alembic_version SET version_num = %s", current)
        until(lambda: answer() == ready, 30)
        with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as superuser:
            superuser.execute(f"ALTER ROLE {name} NOLOGIN".encode())
            superuser.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            until(lambda: answer() == away, 30)
            # The process itself is fine; nobody should restart it because of an unavailable database.
            health = httpx2.get(f"{audience.url}/healthz", trust_env=False)
            assert (health.status_code, health.json()) == (200, {"status": "ok"})
            superuser.execute(f"ALTER ROLE {name} LOGIN".encode())
        until(lambda: answer() == ready, 30)


CONSOLE = {"SOUNDMARK_CONSOLE_KEY": "A" * 43, "SOUNDMARK_BASE_URL": "http://127.0.0.1:9"}
PROVIDER = {"SOUNDMARK_OIDC_ISSUER": "https://id.example", "SOUNDMARK_OIDC_CLIENT_ID": "console"}
TICKETS = {"SOUNDMARK_OPERATOR_TOKEN": "xop_" + "o" * 43, "SOUNDMARK_CONSOLE_TICKETS_PATH": "/srv/tickets"}


def is_alive(found: Serving) -> bool:
    return status_of(f"{found.url}/healthz") == 200


def test_a_console_without_core_serves_and_names_it() -> None:
    with serving("console", CONSOLE, is_ready=is_alive) as console:
        answer = httpx2.get(f"{console.url}/readyz", trust_env=False)
        assert (answer.status_code, answer.json()["unavailable"]) == (503, ["core"])
        assert status_of(f"{console.url}/static/icon.svg") == 200
        assert status_of(console.metrics_url) == 200
        assert status_of(f"{console.url}/metrics") == 404


def test_every_process_of_a_console_opens_the_sessions_of_the_others_until_they_end(tmp_path: Path) -> None:
    """They share the key and the file of ended sessions; the kernel gives each connection to any of them."""
    sealer = Sealer(bytes(32), SystemEntropy())
    response = Response()
    session = Session("operator", "operator", "operator@localhost", "csrf", datetime.now(UTC), True)
    CookieJar(sealer, "soundmark-8083-", is_secure=False).write(response, "session", session)
    cookie = response.headers["set-cookie"].partition(";")[0]
    headers = {"host": "127.0.0.1:8083", "cookie": cookie, "origin": "http://127.0.0.1:8083"}

    environ = {**CONSOLE, **TICKETS, "SOUNDMARK_CONSOLE_STATE_PATH": str(tmp_path)}
    with serving("console", environ, "--workers", "2", is_ready=is_alive) as console:
        parent = psutil.Process(console.process.pid)
        until(lambda: len(_listening(parent)) == 2, 30)

        def look(headers: Mapping[str, str]) -> int:
            return httpx2.get(f"{console.url}/organizations", headers=headers, trust_env=False).status_code

        # Without a session, a visitor is sent to sign in; with one, the page needs Core, which is not there.
        assert {look({**headers, "cookie": ""}) for _ in range(12)} == {303}
        assert {look(headers) for _ in range(12)} == {503}
        form = {"csrf_token": "csrf"}
        assert httpx2.post(f"{console.url}/sign-out", headers=headers, data=form, trust_env=False).status_code == 303
        assert {look(headers) for _ in range(12)} == {303}


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        ({}, "nobody_can_sign_in"),
        (TICKETS, "ended_sessions_not_shared"),
        (PROVIDER, "ended_sessions_not_shared"),
        ({**PROVIDER, "SOUNDMARK_CONSOLE_STATE_PATH": "/srv/state"}, None),
        ({**PROVIDER, "SOUNDMARK_RATE_LIMIT_URL": "redis://127.0.0.1:9"}, None),
    ],
    ids=["nothing", "tickets", "identity provider", "with a file", "with a server"],
)
def test_a_console_that_nobody_can_sign_in_to_or_out_of_for_good_says_so_at_start(
    tmp_path: Path, given: Mapping[str, str], warning: str | None
) -> None:
    """It serves all the same: its listening page is public."""
    log = tmp_path / "console.log"
    with serving("console", {**CONSOLE, **given}, is_ready=is_alive, log=log):
        pass
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["event"] for event in events if event["level"] == "warning"] == ([] if warning is None else [warning])


def test_a_console_without_a_key_is_refused_in_one_line() -> None:
    done = ended("console", environ={})
    assert done.returncode == 1
    assert done.stderr == "soundmark: SOUNDMARK_CONSOLE_KEY or SOUNDMARK_MASTER_KEY must be set\n"


def test_a_port_of_metrics_that_another_deployment_has_is_refused_in_one_line() -> None:
    """They would share it silently, and each scrape would be of another one."""
    with serving("audio", AUDIO) as audio, reserve_port("127.0.0.1", 0) as held:
        metrics_port, port = urlsplit(audio.metrics_url).port, held.getsockname()[1]
        done = ended("audio", "--port", str(port), environ={**AUDIO, "SOUNDMARK_METRICS_PORT": str(metrics_port)})
    assert done.returncode == 1
    assert done.stderr == (
        f"soundmark: 127.0.0.1:{metrics_port} is in use by another program; "
        "SOUNDMARK_METRICS_PORT chooses another port\n"
    )


def test_metrics_have_a_port_of_their_own() -> None:
    """Otherwise every second request for the component would reach its metrics."""
    with reserve_port("127.0.0.1", 0) as held:
        port = str(held.getsockname()[1])
        done = ended("audio", "--port", port, environ={**AUDIO, "SOUNDMARK_METRICS_PORT": port})
    assert (done.returncode, done.stderr) == (
        1,
        f"soundmark: SOUNDMARK_METRICS_PORT is {port}, the port of the component itself; choose another\n",
    )
