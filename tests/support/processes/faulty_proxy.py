"""A proxy between a client and a service that loses requests and responses on command."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Self
from urllib.parse import urlsplit

Fault = Literal["none", "request lost", "answer lost", "half an answer"]


@dataclass(frozen=True)
class ProxiedRequest:
    """A request that passed."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class FaultyProxy(socketserver.ThreadingTCPServer):
    """Passes everything on; the requests whose path contains `where` meet the `faults`, one after the other."""

    daemon_threads = True

    def __init__(self, target_url: str, *faults: Fault, where: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        parts = urlsplit(target_url)
        self.target = (parts.hostname or "", parts.port or 80)
        self.where = where
        self.faults = list(faults)
        self.passed: list[ProxiedRequest] = []
        self.arrived = threading.Event()
        self._open = threading.Event()
        self._open.set()
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Hold every request until the block ends."""
        self._open.clear()
        yield
        self._open.set()

    def fault_of(self, passed: ProxiedRequest) -> Fault:
        with self._turn:
            self.passed.append(passed)
        self.arrived.set()
        self._open.wait()
        with self._turn:
            return self.faults.pop(0) if self.faults and self.where in passed.path else "none"


class _Handler(socketserver.StreamRequestHandler):
    server: FaultyProxy

    def handle(self) -> None:
        begin = self.rfile.readline()
        if not begin:
            return
        lines = list(iter(self.rfile.readline, b"\r\n"))
        pairs = (line.decode().strip().partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = self.rfile.read(int(headers.get("content-length", "0")))
        method, path, _ = begin.decode().split()
        fault = self.server.fault_of(ProxiedRequest(method, path, headers, body))
        if fault == "request lost":
            return
        kept = [line for line in lines if not line.lower().startswith(b"connection:")]
        answer = self._ask(b"".join([begin, *kept, b"Connection: close\r\n\r\n", body]))
        if fault == "answer lost":
            return
        self.wfile.write(answer[: len(answer) // 2] if fault == "half an answer" else answer)

    def _ask(self, request: bytes) -> bytes:
        with socket.create_connection(self.server.target, timeout=60) as upstream:
            upstream.sendall(request)
            return b"".join(iter(lambda: upstream.recv(65536), b""))
