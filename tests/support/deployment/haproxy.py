"""HAProxy with the configurations in deploy/haproxy, on ports of the tests, and servers behind it."""

import contextlib
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from soundmark.kit.clock import SystemClock
from support.deployment.commands import DEPLOY

PROGRAM = "/usr/sbin/haproxy"


def listen() -> socket.socket:
    """Return a socket for HAProxy to inherit, on a port that nobody else gets."""
    return socket.create_server(("127.0.0.1", 0), backlog=64)


def port_of(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


def write_certificate(file: Path) -> None:
    """Write a certificate and its key as HAProxy reads them."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "soundmark.example.org")])
    now = SystemClock().now()
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)


def write_configuration(folder: Path, *names: str, replacing: Mapping[str, str]) -> list[str]:
    """Copy configurations with other addresses; every replacement must be needed."""
    left = dict(replacing)
    files = []
    for name in names:
        text = (DEPLOY / name).read_text("utf-8")
        for old, new in replacing.items():
            if old in text:
                left.pop(old, None)
                text = text.replace(old, new)
        if os.geteuid() != 0:  # Only root can become another user.
            text = re.sub(r"^    (?:user|group|chroot) .*$", "", text, flags=re.MULTILINE)
        file = folder / Path(name).name
        file.write_text(text, "utf-8")
        files += ["-f", str(file)]
    assert not left, "these are in no configuration"
    return files


def check(files: list[str], *listening: socket.socket) -> None:
    """Let HAProxy check a configuration; a warning is a fault too."""
    fds = [it.fileno() for it in listening]
    command = [PROGRAM, "-c", "-q", "-dW", *files]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, pass_fds=fds)
    assert (done.returncode, done.stderr) == (0, "")


@contextlib.contextmanager
def running_haproxy(files: list[str], *listening: socket.socket) -> Iterator[None]:
    """Run it in the foreground until the block ends. It inherits the sockets, so a connection is never refused."""
    fds = [it.fileno() for it in listening]
    with subprocess.Popen(
        [PROGRAM, "-db", *files], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=fds
    ) as process:
        try:
            yield
            assert process.poll() is None, "HAProxy ended"
        finally:
            process.kill()


@dataclass
class Server:
    """An HTTP server behind HAProxy: it notes what it is sent, and answers or hangs up as it is told."""

    name: str
    is_ready: bool = True
    hangs_up: bool = False
    seen: list[tuple[str, str, Mapping[str, list[str]]]] = field(default_factory=list)
    port: int = 0

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        if handler.path in {"/readyz?scope=process", "/healthz", "/primary"}:
            self.send(handler, 200 if self.is_ready else 503, b"")
            return
        headers = {name.lower(): handler.headers.get_all(name, []) for name in handler.headers}
        self.seen.append((handler.command, handler.path, headers))
        if not self.hangs_up:
            self.send(handler, 200, self.name.encode())

    def send(self, handler: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
        handler.send_response(status)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


@contextlib.contextmanager
def running_server(name: str) -> Iterator[Server]:
    server = Server(name)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            server.answer(self)

        do_POST = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_: Any) -> None:
            pass

    class Http(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """Say nothing: health checks do not wait for the end of an answer."""

    with Http(("127.0.0.1", 0), Handler) as http:
        server.port = http.server_port
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
