"""A page of another origin in a real browser receives Codes, and reads nothing that needs a credential."""

import http.server
import json
import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.processes.running_apps import served_in_thread
from support.tenancy.tenant import INTENT

from soundmark.core.app import create_app
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.postgres.migrations import migrate

pytestmark = pytest.mark.xdist_group("browser")  # One browser for all tests.

PAGE: Final = Path(__file__).with_name("receiver.html")
BROWSER_S: Final = 90  # On an idle machine a browser starts in two seconds.
FLAGS: Final = (
    "--headless",
    "--no-sandbox",  # It opens only our own page, and the tests may run as root.
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@pytest.fixture(scope="module")
def service(cluster: RunningCluster) -> Iterator[httpx2.Client]:
    """A Core on a real socket, as its operator sees it."""
    url = cluster.create_role_and_database("core_of_pages")
    migrate(url, "soundmark.core")
    with served_in_thread(create_app(core_settings(url))) as address:
        headers = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
        with httpx2.Client(base_url=address, headers=headers, trust_env=False) as client:
            yield client


@pytest.fixture(scope="module")
def token(service: httpx2.Client) -> str:
    """The token of an active Code."""
    organization_id = make(service, "/v1/organizations", name="Radio Nordlicht")["id"]
    tenant = {"organization_id": organization_id}
    project_id = make(service, "/v1/projects", **tenant, name="Morning show")["id"]
    request = {"project_id": project_id, "issuer": "Radio", "expires_at": "2999-01-01T00:00:00.000Z", "intent": INTENT}
    issued: str = make(service, "/v1/codes", **tenant, **request)["broadcast_token"]
    return issued


def make(client: httpx2.Client, path: str, **body: Any) -> Any:
    return client.post(path, json=body).raise_for_status().json()


@contextmanager
def page_server(question: dict[str, str]) -> Iterator[tuple[str, "queue.Queue[Any]"]]:
    """Serve the page from an origin of its own, and collect its findings."""
    found: queue.Queue[Any] = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            contents = {
                "/": ("text/html", PAGE.read_bytes()),
                "/question.json": ("application/json", json.dumps(question).encode()),
            }
            self._answer(*contents.get(self.path, ("text/plain", b"")))

        def do_POST(self) -> None:
            found.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self._answer("text/plain", b"")

        def _answer(self, media_type: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", media_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", found
        finally:
            server.shutdown()
            thread.join(10)


@contextmanager
def browser_at(url: str, profile: Path) -> Iterator[None]:
    """Run a browser with an empty profile on the page; end it and all its processes afterwards."""
    program = shutil.which("chromium")
    assert program is not None, "there is no chromium; `make test-tools` installs it"
    command = [program, *FLAGS, f"--user-data-dir={profile}", url]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


@pytest.fixture(scope="module")
def found(service: httpx2.Client, token: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The findings of the page."""
    question = {"service": str(service.base_url), "token": token}
    with page_server(question) as (url, answers), browser_at(url, tmp_path_factory.mktemp("profile")):
        seen = answers.get(timeout=BROWSER_S)
    assert "failed" not in seen, seen["failed"]
    return seen


def test_a_page_resolves_a_code_with_a_proof_and_verifies_it(found: Any, token: str) -> None:
    """The preflight allows the header; WebCrypto verifies what Core signed, and no altered bytes."""
    assert found["resolved"]["status"] == 200
    assert json.loads(found["resolved"]["text"])["intent"] == INTENT
    assert found["verified"]["genuine"] is True
    assert found["verified"]["altered"] is False
    assert found["verified"]["signed"]["intent"] == INTENT
    assert token not in json.dumps(found["verified"]["signed"])


@pytest.mark.parametrize(
    ("heard", "status", "code"), [("unknown", 404, "code_unavailable"), ("refused", 422, "validation_failed")]
)
def test_a_page_reads_why_it_was_refused(found: Any, heard: str, status: int, code: str) -> None:
    assert found[heard]["status"] == status
    assert json.loads(found[heard]["text"])["code"] == code


def test_a_page_reads_its_limit_and_the_request_id(found: Any) -> None:
    for heard in ("resolved", "unknown", "refused"):
        assert found[heard]["named"] == ["RateLimit", "RateLimit-Policy", "X-Request-Id"]
    assert found["keys"]["named"] == ["X-Request-Id"]


def test_a_page_reads_the_published_documents(found: Any) -> None:
    assert len(found["open"]) == 4
    assert set(found["open"].values()) == {200}


def test_a_page_reads_nothing_that_needs_a_credential(found: Any) -> None:
    """The browser hides each of these responses from it."""
    assert len(found["blocked"]) == 8
    assert {what: seen for what, seen in found["blocked"].items() if seen != {"blocked": "TypeError"}} == {}


def test_a_simple_request_of_a_page_changes_nothing(found: Any, service: httpx2.Client) -> None:
    """A simple POST reaches the service, which requires a credential that no browser adds by itself."""
    assert found["blocked"]
    (organization,) = service.get("/v1/organizations").json()["data"]
    codes = service.get("/v1/codes", params={"organization_id": organization["id"]}).json()["data"]
    assert len(codes) == 1
