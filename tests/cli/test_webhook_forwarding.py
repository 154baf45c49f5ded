"""The server of `soundmark webhooks listen`: it forwards what is signed, unchanged, and passes the answer back."""

import base64
import hashlib
import hmac
import http.client
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest
from soundmark_sdk.webhooks import verify

from soundmark.cli import webhook_forwarding
from soundmark.cli.webhook_forwarding import HOST, Forwarding, forwarding

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
PATH = "/path-that-nobody-guesses"
BODY = '{"type":"code.issued","timestamp":"2026-11-20T10:00:00.000Z","data":{"xr_id":"xr_ä"}}'.encode()


def sign(body: bytes = BODY) -> dict[str, str]:
    unix_s = str(int(datetime.now(UTC).timestamp()))
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    digest = hmac.digest(key, b"evn_1." + unix_s.encode() + b"." + body, hashlib.sha256)
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": "evn_1", "webhook-timestamp": unix_s, "webhook-signature": signature}


class Program:
    """A program under development, which answers as it is told and remembers what it got."""

    def __init__(self) -> None:
        self.answer: Callable[[], int] = lambda: 204
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        program = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                program.received.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(program.answer())
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer((HOST, 0), Handler)
        self.url = f"http://{HOST}:{self.server.server_address[1]}/hooks?from=soundmark"


@pytest.fixture
def program() -> Iterator[Program]:
    """A program that receives forwarded webhooks."""
    running = Program()
    thread = threading.Thread(target=running.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.server.shutdown()
    running.server.server_close()
    thread.join()


@pytest.fixture
def listening(program: Program) -> Iterator[Forwarding]:
    """Forwarding to the program, under way."""
    with forwarding(program.url, PATH) as running:
        running.start(SECRET)
        yield running


def post(running: Forwarding, body: bytes = BODY, *, path: str = PATH, **headers: str) -> int:
    url = f"http://{HOST}:{running.port}{path}"
    given = {"content-type": "application/json", "user-agent": "Soundmark/1", **(headers or sign(body))}
    return httpx2.post(url, content=body, headers=given, trust_env=False).status_code


def announce(running: Forwarding, length: int) -> int:
    """Send the head of a request whose body never comes."""
    connection = http.client.HTTPConnection(HOST, running.port, timeout=30)
    connection.putrequest("POST", PATH)
    connection.putheader("content-length", str(length))
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status


def test_the_message_arrives_unchanged_and_still_verifies(
    listening: Forwarding, program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    assert post(listening) == 204
    ((path, headers, body),) = program.received
    assert (path, body) == ("/hooks?from=soundmark", BODY)
    assert headers["content-type"] == "application/json"
    assert headers["user-agent"] == "Soundmark/1"
    assert verify(headers, body, SECRET).data == {"xr_id": "xr_ä"}
    assert capsys.readouterr().out.startswith("code.issued evn_1 -> 204 (")


@pytest.mark.parametrize("status", [200, 302, 400, 410, 500])
def test_the_answer_is_passed_back(listening: Forwarding, program: Program, status: int) -> None:
    program.answer = lambda: status
    assert post(listening) == status
    assert len(program.received) == 1, "a redirect is not followed"


def test_a_program_that_is_down_is_502_so_that_the_service_tries_again(capsys: pytest.CaptureFixture[str]) -> None:
    with forwarding(f"http://{HOST}:9/", PATH) as running:
        running.start(SECRET)
        assert post(running) == 502
    assert "-> 502: your program did not answer (ConnectError)" in capsys.readouterr().out


def test_a_program_that_hangs_is_502_in_time(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_forwarding, "_FORWARD_TIMEOUT_S", 0.2)
    is_over = threading.Event()

    def hang() -> int:
        assert is_over.wait(60)
        return 204

    program.answer = hang
    with forwarding(program.url, PATH) as running:
        running.start(SECRET)
        assert post(running) == 502
        is_over.set()


def test_only_what_the_service_signed_is_forwarded(
    listening: Forwarding, program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any program on this machine can connect to the port."""
    assert post(listening, BODY + b" ", **sign()) == 400
    assert post(listening, **{"webhook-id": "evn_1"}) == 400
    assert post(listening, path="/") == 404
    assert announce(listening, 1024 * 1024 + 1) == 413
    assert program.received == []
    out = capsys.readouterr()
    assert (out.out, out.err.count("not forwarded: ")) == ("", 2)


def test_a_message_that_comes_before_the_secret_is_known_waits(program: Program) -> None:
    """The service may send one before the answer with the secret has arrived here."""
    with forwarding(program.url, PATH) as running:
        statuses: list[int] = []
        early = threading.Thread(target=lambda: statuses.append(post(running)))
        early.start()
        running.start(SECRET)
        early.join()
    assert statuses == [204]
