"""What a connection may hold of a server, and for how long."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from soundmark.kit import serve, sockets

Address = tuple[str, int]


async def answering(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[Address]:
    """A server that gives every request half a second."""
    monkeypatch.setattr(serve, "_REQUEST_MAX_S", 0.5)
    monkeypatch.setattr(serve, "_TICKS_BETWEEN_SWEEPS", 1)
    server = serve._server(answering, lifespan="off")
    with sockets.shared_socket("127.0.0.1", 0) as sock:
        sockets.listen(sock)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[sock])))
        thread.start()
        try:
            yield sock.getsockname()
        finally:
            server.should_exit = True
            thread.join(20)


BEGUN = {
    "nothing": b"",
    "a path": b"GET /",
    "a header": b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "a body": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{",
    "a second request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n",
}


@pytest.mark.parametrize("begun", BEGUN)
def test_who_does_not_finish_a_request_is_let_go(address: Address, begun: str) -> None:
    """Or a handful of machines could hold every connection that a process can have."""
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(BEGUN[begun])
        received = b"".join(iter(lambda: connection.recv(4096), b""))
    assert received.endswith(b"ok") == (begun == "a second request")


def test_who_asks_again_and_again_stays(address: Address) -> None:
    """The time is one request's, not the connection's."""
    with socket.create_connection(address, timeout=20) as connection:
        for _ in range(8):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(4096).endswith(b"ok")
            threading.Event().wait(0.1)
