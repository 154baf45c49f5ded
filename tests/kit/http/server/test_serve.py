"""How much of a server a connection may hold and for how long, and which requests are malformed."""

import asyncio
import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any
from urllib.parse import unquote

import pytest
import uvloop
from prometheus_client import REGISTRY

from soundmark.kit.http.responses.plain_response import WHOLE_RESPONSE
from soundmark.kit.http.server import connection, serve, sockets
from soundmark.kit.http.server.connection import ConnectionGate, ConnectionLimits

Address = tuple[str, int]
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = b"x" * (32 * 1024 * 1024)  # More than the socket buffers of both kernels hold.


async def answering(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    while (await receive()).get("more_body"):
        pass
    body = LARGE if scope["path"] == "/large" else b"ok"
    length = b"%d" % len(body)
    if scope["path"] == "/whole":
        head = b"content-length: %b\r\n" % length
        await send({"type": WHOLE_RESPONSE, "status": 200, "head": head, "body": body})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def serving(limits: ConnectionLimits, app: Any = answering) -> Iterator[Address]:
    server = serve._server(app, limits, connection.Connection, lifespan="off")
    with sockets.shared_socket("127.0.0.1", 0) as sock:
        connection.limit_memory_of_peers(sock)
        sockets.listen(sock)
        loop = uvloop.new_event_loop()
        thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve(sockets=[sock])))
        thread.start()
        try:
            yield sock.getsockname()
        finally:
            loop.call_soon_threadsafe(server.stop)
            thread.join(20)
            assert not thread.is_alive()
            loop.close()


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Timeouts of half a second in place of half a minute."""
    for name in ("REQUEST_MAX_S", "IDLE_MAX_S", "STALL_MAX_S"):
        monkeypatch.setattr(connection, name, 0.5)
    monkeypatch.setattr(serve, "_TICK_S", 0.1)


@pytest.fixture
def address() -> Iterator[Address]:
    """The address of a server that gives each peer half a second."""
    with serving(ConnectionLimits()) as address:
        yield address


def received_until_closed(peer: socket.socket) -> bytes:
    """Return everything that the server sends until it closes the connection, in whichever way."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := peer.recv(65536):
            parts.append(part)
    return b"".join(parts)


def exchange(address: Address, sent: bytes) -> bytes:
    with socket.create_connection(address, timeout=20) as peer:
        peer.sendall(sent)
        return received_until_closed(peer)


def ended_count(limit: str) -> float:
    return REGISTRY.get_sample_value("soundmark_connections_ended_total", {"limit": limit}) or 0.0


BEGUN = {
    "nothing": b"",
    "a path": b"GET /",
    "a header": b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "a body": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{",
    "a chunk": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "a second request": REQUEST + b"GET / HTTP/1.1\r\n",
    "an empty line first": b"\r\n",
    "a request and CR": REQUEST + b"\r",
    "a request and CR LF": REQUEST + b"\r\n",
    "a request and many empty lines": REQUEST + b"\r\n" * 500,
}


@pytest.mark.parametrize("begun", BEGUN)
def test_a_peer_that_sends_no_whole_request_is_disconnected(address: Address, begun: str) -> None:
    """Otherwise a few machines could hold every connection of a process, with one byte after a request each."""
    received = exchange(address, BEGUN[begun])
    assert received.count(b"\r\n\r\nok") == BEGUN[begun].count(REQUEST)


def test_an_occasional_byte_does_not_keep_a_connection_open(address: Address) -> None:
    with socket.create_connection(address, timeout=20) as peer:
        peer.sendall(REQUEST)
        assert peer.recv(4096).endswith(b"ok")
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            for _ in range(50):
                peer.sendall(b"\r\n")
                peer.settimeout(0.1)
                with contextlib.suppress(TimeoutError):
                    assert peer.recv(4096) == b""
                    return
    # A reset ends the connection as well.


def test_a_peer_that_keeps_sending_requests_stays_connected(address: Address) -> None:
    """The timeout applies to one request, not to the connection."""
    with socket.create_connection(address, timeout=20) as peer:
        for _ in range(8):
            peer.sendall(REQUEST)
            assert peer.recv(4096).endswith(b"ok")
            threading.Event().wait(0.1)


def test_a_slow_answer_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """While we owe a response, the peer is not timed, even if that takes an hour."""
    sweeps, sweep = list[float](), ConnectionGate.sweep

    def sweep_later(gate: ConnectionGate, connections: Any, now_s: float) -> None:
        sweep(gate, connections, now_s + 3600)
        sweeps.append(now_s)

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        with monkeypatch.context() as an_hour:
            an_hour.setattr(ConnectionGate, "sweep", sweep_later)
            while len(sweeps) < 2:  # noqa: ASYNC110 - the server sweeps in its own time
                await asyncio.sleep(0.01)
        await answering(scope, receive, send)

    with serving(ConnectionLimits(), slow) as address:
        assert b"\r\n\r\nok" in exchange(address, REQUEST)


def test_an_answer_that_nobody_reads_is_aborted(address: Address) -> None:
    """Otherwise each such peer keeps a response in our memory, and another in the kernel's."""
    before = ended_count("unread_answer")
    with socket.create_connection(address, timeout=20) as peer:
        peer.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert peer.recv(1024).startswith(b"HTTP/1.1 200")
        deadline = threading.Event()
        for _ in range(100):
            if ended_count("unread_answer") > before:
                break
            deadline.wait(0.1)
        with pytest.raises(ConnectionResetError):  # noqa: PT012 - the reset comes behind what was on its way
            while peer.recv(1024 * 1024):
                pass
    assert ended_count("unread_answer") == before + 1


def test_an_answer_that_is_read_slowly_is_sent_whole(address: Address) -> None:
    """Progress counts: the whole response takes three times as long as a stall may last."""
    with socket.create_connection(address, timeout=20) as peer:
        peer.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        length = 0
        for _ in range(15):
            length += len(peer.recv(2 * 1024 * 1024))
            threading.Event().wait(0.1)
        length += len(received_until_closed(peer))
    assert length > len(LARGE)


@pytest.mark.parametrize(("size", "is_decoded"), [(4095, True), (4098, False)])
def test_a_path_that_no_route_has_is_not_decoded(size: int, *, is_decoded: bool) -> None:
    """Decoding 57 KB of escapes took 5 ms, before anything looked for a route."""
    paths = []

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        paths.append(scope["path"])
        await answering(scope, receive, send)

    path = b"/" + b"%41" * (size // 3)
    with serving(ConnectionLimits(), noting) as address:
        exchange(address, b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path)
    assert paths == [unquote(path.decode()) if is_decoded else path.decode()]


@pytest.mark.parametrize("path", [b"/", b"/whole"])
def test_sixteen_requests_may_wait_on_a_connection(address: Address, path: bytes) -> None:
    received = exchange(address, REQUEST.replace(b"/ ", path + b" ") * 16)
    assert received.count(b"\r\n\r\nok") == 16


def test_a_peer_that_queues_more_is_answered_sixteen_times_and_disconnected(address: Address) -> None:
    """The rest is never parsed: five thousand requests in one read would be 13 MB."""
    before = ended_count("queued_requests")
    received = exchange(address, REQUEST * 4000)
    assert received.count(b"\r\n\r\nok") == 16
    assert ended_count("queued_requests") == before + 1


REFUSED = {
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500, 400),
    "HTTP/0.9": (b"GET /\r\n\r\n", 400),
    "HTTP/2.0": (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 400),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "another coding": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "two codings": (
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        501,
    ),
    "a coding that is not chunked": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", 501),
    "length and coding": (
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "two lengths": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    "a negative length": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
    "a length with a sign": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na", 400),
    "a length list": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\na", 400),
    "a folded header": (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n", 400),
    "a blank before the colon": (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
    "a NUL in a header": (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b\x00c\r\n\r\n", 400),
    "LF without CR": (b"GET / HTTP/1.1\nHost: x\n\n", 400),
    "a CR in a header": (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b\rX-B: c\r\n\r\n", 400),
    "a chunk size that is none": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    "a chunk that is longer than it says": (
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
        400,
    ),
    "a large head": (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 70_000, 431),
}


def test_a_request_with_ambiguous_framing_is_refused(address: Address, subtests: pytest.Subtests) -> None:
    """Two readers of one stream must not see different requests in it; nothing after a refused request is answered."""
    for name, (sent, status) in REFUSED.items():
        with subtests.test(name):
            received = exchange(address, sent + (b"" if name == "a large head" else REQUEST))
            assert [int(each) for each in re.findall(rb"HTTP/1\.1 (\d+) ", received)] == [status]
            head = received.partition(b"\r\n\r\n")[0].lower()
            assert b"\r\nconnection: close" in head
            assert b"\r\nx-content-type-options: nosniff" in head
            assert re.search(rb"\r\nx-request-id: req_[0-9a-f]{32}\r\n", head)


def test_whole_requests_before_a_broken_one_are_answered(address: Address) -> None:
    received = exchange(address, REQUEST + REQUEST + b"nonsense\r\n\r\n" + REQUEST)
    assert received.count(b"\r\n\r\nok") == 2


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
def test_an_upgrade_request_is_answered_in_our_protocol_and_ends_the_connection(
    address: Address, protocol: bytes
) -> None:
    """What follows could belong to the other protocol: it is neither answered nor awaited."""
    wish = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %b\r\n\r\n" % protocol
    received = exchange(address, wish + REQUEST)
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert received.count(b"\r\n\r\nok") == 1
    assert b"connection: close" in received


def test_an_old_client_is_answered_and_disconnected(address: Address) -> None:
    assert exchange(address, b"GET /whole HTTP/1.0\r\n\r\n").endswith(b"connection: close\r\n\r\nok")


def connected(address: Address, stack: contextlib.ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection(address, timeout=5))


def is_answered(peer: socket.socket) -> bool:
    try:
        peer.sendall(REQUEST)
        return peer.recv(4096).endswith(b"ok")
    except (ConnectionResetError, BrokenPipeError):
        return False


def is_new_connection_answered(address: Address, stack: contextlib.ExitStack) -> bool:
    try:
        peer = connected(address, stack)
    except ConnectionResetError:
        return False  # On a busy machine the server's reset can arrive before connect() returns.
    return is_answered(peer)


def test_the_connections_of_one_address_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IDLE_MAX_S", 30)
    with serving(ConnectionLimits(per_address_max=3)) as address, contextlib.ExitStack() as stack:
        peers = [connected(address, stack) for _ in range(3)]
        assert all(map(is_answered, peers))
        assert not is_new_connection_answered(address, stack)
        peers[0].close()
        assert any(is_new_connection_answered(address, stack) for _ in range(1000)), "once the server has noticed"


def test_the_connections_of_a_trusted_proxy_are_not_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """All its callers share one address."""
    monkeypatch.setattr(connection, "IDLE_MAX_S", 30)
    limits = ConnectionLimits(per_address_max=1, trusted_proxies=(ip_network("127.0.0.0/8"),))
    with serving(limits) as address, contextlib.ExitStack() as stack:
        assert all(is_new_connection_answered(address, stack) for _ in range(5))


def test_a_full_process_closes_the_connection_that_was_idle_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a few addresses could shut everybody else out for half a minute at a time."""
    swept, sweep = threading.Event(), ConnectionGate.sweep

    def sweep_once_a_minute_later(gate: ConnectionGate, connections: Any, now_s: float) -> None:
        if swept.is_set():
            return
        sweep(gate, connections, now_s)
        # A connection whose last answer is not confirmed yet, which may take 40 ms, counts as resting since now.
        if all(each.resting_since_s() != now_s for each in connections):
            sweep(gate, connections, now_s + 60)
            swept.set()

    for name in ("REQUEST_MAX_S", "IDLE_MAX_S", "STALL_MAX_S"):
        monkeypatch.setattr(connection, name, 300)  # An answer that is not confirmed yet would end its connection.
    monkeypatch.setattr(connection, "_EVICTABLE_AFTER_S", 30)
    with serving(ConnectionLimits(connections_max=16)) as address, contextlib.ExitStack() as stack:
        peers = [connected(address, stack) for _ in range(16)]
        # The others long enough for a clock of milliseconds to tell.
        assert all(map(is_answered, [*peers, *peers[1:], *(20 * peers[2:])])), "the first rests, and then the second"
        assert not is_new_connection_answered(address, stack), "nobody rests long enough yet"
        monkeypatch.setattr(ConnectionGate, "sweep", sweep_once_a_minute_later)
        assert swept.wait(20)
        assert is_answered(peers[0]), "used after the sweep, so kept"
        assert is_new_connection_answered(address, stack)
        assert received_until_closed(peers[1]) == b""
        assert all(map(is_answered, [peers[0], *peers[2:]]))


def test_an_ipv6_address_counts_by_its_64(subtests: pytest.Subtests) -> None:
    for one, other, is_same in [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
    ]:
        with subtests.test(one=one, other=other, is_same=is_same):
            gate = ConnectionGate(ConnectionLimits(per_address_max=1))
            assert gate.enter(one) is not None
            assert (gate.enter(other) is None) == is_same


def test_a_closed_connection_no_longer_counts() -> None:
    gate = ConnectionGate(ConnectionLimits(connections_max=1))
    for _ in range(3):
        subject = gate.enter("192.0.2.1")
        assert subject is not None
        assert gate.enter("192.0.2.9") is None
        gate.leave(subject)


def test_a_process_accepts_no_more_connections_than_it_has_file_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without a free file descriptor cannot answer anybody."""
    monkeypatch.setattr(serve.resource, "getrlimit", lambda _: (256, 256))
    assert serve._limits_of_this_process(ConnectionLimits()).connections_max == 128
    monkeypatch.setattr(serve.resource, "getrlimit", lambda _: (2048, 2048))
    assert serve._limits_of_this_process(ConnectionLimits()).connections_max == 1792
