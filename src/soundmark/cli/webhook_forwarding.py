"""The server of `soundmark webhooks listen`, which forwards each message to a program and passes its answer back."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

import httpx2
import typer
from soundmark_sdk.webhooks import WebhookRejected, verify

from soundmark.cli.intents import printable
from soundmark.kit.clock import SystemClock

HOST: Final = "127.0.0.1"

_BODY_MAX_BYTES: Final = 1024 * 1024  # Messages have a few KiB.
_SOCKET_TIMEOUT_S: Final = 30.0
# The service waits for 15 s, so that it hears of a slow program rather than of nothing.
_FORWARD_TIMEOUT_S: Final = 12.0
# Of the connection to this command, or set anew for the one to the program.
_NOT_FORWARDED: Final = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})


class _Answer(NamedTuple):
    """What the service is answered, and how the line about it ends."""

    status: int
    remark: str


class Forwarding:
    """A server on a port of its own. It accepts connections at once and answers them after `start`.

    It forwards only what the service signed. The program that it forwards to is the user's own and named by them, so a
    plain client calls it: nothing of the answer is read but the status.
    """

    def __init__(self, target: str, path: str) -> None:
        self.path: Final = path
        self._target: Final = target
        self._secret = ""
        self._client: Final = httpx2.Client(timeout=_FORWARD_TIMEOUT_S, trust_env=False, follow_redirects=False)
        self._server: Final = _Server((HOST, 0), _Handler)
        self._server.forwarding = self
        self._thread: Final = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1})

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def start(self, secret: str) -> None:
        """Answer messages that are signed with this secret."""
        self._secret = secret
        self._thread.start()

    def close(self) -> None:
        """Take no more messages."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._client.close()

    def forward(self, headers: Any, body: bytes) -> int:
        """Forward a message and print a line about it; return the status for the service."""
        try:
            message = verify(headers, body, self._secret)
        except WebhookRejected as rejected:
            typer.echo(f"not forwarded: {rejected.explanation}", err=True)
            return HTTPStatus.BAD_REQUEST
        clock = SystemClock()
        began_s = clock.monotonic_s()
        answer = self._ask_program(headers, body)
        took_ms = round((clock.monotonic_s() - began_s) * 1000)
        typer.echo(printable(f"{message.type} {message.id} -> {answer.status}{answer.remark} ({took_ms} ms)"))
        return answer.status

    def _ask_program(self, headers: Any, body: bytes) -> _Answer:
        kept = [(name, value) for name, value in headers.items() if name.lower() not in _NOT_FORWARDED]
        try:
            with self._client.stream("POST", self._target, headers=kept, content=body) as response:
                return _Answer(response.status_code, "")
        except httpx2.TimeoutException:
            return _Answer(HTTPStatus.BAD_GATEWAY, ": your program did not answer in time")
        except httpx2.HTTPError as error:
            return _Answer(HTTPStatus.BAD_GATEWAY, f": your program did not answer ({type(error).__name__})")


@contextlib.contextmanager
def forwarding(target: str, path: str) -> Iterator[Forwarding]:
    """Yield a server that forwards to `target` what is posted to `path`, until the block ends."""
    running = Forwarding(target, path)
    try:
        yield running
    finally:
        running.close()


class _Server(ThreadingHTTPServer):
    forwarding: Forwarding
    # Whatever is under way when the command ends is no longer wanted: its endpoint is gone.
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # A connection that broke is the service's to repeat.
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Takes one message: a POST to the secret path with a body of known length."""

    protocol_version = "HTTP/1.1"
    timeout = _SOCKET_TIMEOUT_S
    server: _Server

    def do_POST(self) -> None:
        """Answer a POST."""
        running = self.server.forwarding
        length = self.headers.get("content-length", "")
        if self.path != running.path:
            self._answer(HTTPStatus.NOT_FOUND)
        elif not length.isascii() or not length.isdigit():
            self._answer(HTTPStatus.LENGTH_REQUIRED)
        elif int(length) > _BODY_MAX_BYTES:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._answer(running.forward(self.headers, self.rfile.read(int(length))))

    def log_message(self, *_: Any) -> None:
        """Print nothing: `Forwarding` prints a line for each message."""

    def _answer(self, status: int) -> None:
        # One message for each connection, so that none keeps the command from ending.
        self.close_connection = True
        self.send_response(status)
        self.send_header("content-length", "0")
        self.send_header("connection", "close")
        self.end_headers()
