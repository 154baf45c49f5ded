"""`/metrics` and `/healthz` of an agent, on a port of their own."""

import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from soundmark.kit.text.timestamps import format_timestamp
from soundmark.studio.play.journal import Health, Journal

_SOCKET_TIMEOUT_S: Final = 10.0


@contextlib.contextmanager
def serving_status(port: int | None, host: str, journal: Journal) -> Iterator[int | None]:
    """Serve what the journal holds until the block ends, and yield the port; port None: do not, 0: a free one.

    Raises: OSError if the port cannot be listened on.
    """
    if port is None:
        yield None
        return
    server = _Server((host, port), _Handler)
    server.journal = journal
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    journal: Journal

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # A client that hung up is no news.
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    timeout = _SOCKET_TIMEOUT_S
    server: _Server

    def do_GET(self) -> None:
        """Answer a GET."""
        journal = self.server.journal
        if self.path == "/metrics":
            self._answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(journal.registry))
        elif self.path == "/healthz":
            health = journal.health
            status = HTTPStatus.OK if health.is_good else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, "application/json", json.dumps(_document(health)).encode())
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"")

    def log_message(self, *_: Any) -> None:
        """Log nothing: a scrape every few seconds is no news."""

    def _answer(self, status: HTTPStatus, media_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _document(health: Health) -> dict[str, Any]:
    return {
        "status": health.status,
        "reason": health.reason,
        "xr_id": health.xr_id,
        "held_count": health.held_count,
        "held_until": None if health.held_until is None else format_timestamp(health.held_until),
        "service_reachable": health.is_service_reachable,
    }
