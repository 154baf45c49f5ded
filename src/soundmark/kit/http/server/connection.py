"""One HTTP/1.1 connection: uvicorn's protocol, with limits on everything that a peer can make us hold."""

import asyncio
import fcntl
import functools
import socket
import termios
import urllib.parse
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final

import httptools
from prometheus_client import Counter
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from soundmark.kit.http.asgi import DRAINING
from soundmark.kit.http.responses.plain_response import WHOLE_RESPONSE
from soundmark.kit.http.server.response_cycle import ResponseCycle, make_refusal
from soundmark.kit.http.server.write_coalescing import GatheringTransport

# Contract, section 1, "Connections".
HEAD_MAX_BYTES: Final = 64 * 1024
REQUEST_MAX_S: Final = 30.0
_PATH_BYTES_MAX: Final = 4096  # Of a path that is decoded.
IDLE_MAX_S: Final = 30.0
STALL_MAX_S: Final = 30.0
REQUESTS_MAX: Final = 16  # Requests that were read and are not answered completely.

_EVICTABLE_AFTER_S: Final = 1.0
_NEARLY_FULL: Final = 0.9
_SEND_BUFFER_BYTES: Final = 256 * 1024  # Otherwise the kernel grows it to 4 MB for each peer that does not read.
_JUDGED_HEADERS: Final = frozenset({b"host", b"expect", b"transfer-encoding"})
_VERSIONS: Final = frozenset({"1.0", "1.1"})
_EXTENSIONS: Final[dict[str, dict[str, Any]]] = {WHOLE_RESPONSE: {}}
_RESET: Final = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # `struct linger`: on, for zero seconds.

_ended: Final = Counter("soundmark_connections_ended_total", "Connections ended by a limit, by limit.", ["limit"])

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The most connections that one process holds, in all and from one address that is not a trusted proxy."""

    connections_max: int = 4096
    per_address_max: int = 512
    trusted_proxies: tuple[Network, ...] = ()


class ConnectionGate:
    """A gate that admits connections up to the limits, and closes resting ones to make room for new ones."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits: Final = limits
        self._counts: dict[str, int] = {}
        self._total = 0
        self._evictable: deque[tuple[float, Connection]] = deque()

    def enter(self, peer: str | None) -> str | None:
        """Count a connection; return the subject to pass to `leave`, or None if it exceeds a limit."""
        subject = self._subject_of(peer)
        count = self._counts.get(subject, 0)
        if subject and count >= self._limits.per_address_max:
            _ended.labels("connections_per_address").inc()
            return None
        if self._total >= self._limits.connections_max and not self._make_room():
            _ended.labels("connections").inc()
            return None
        self._total += 1
        self._counts[subject] = count + 1
        return subject

    def leave(self, subject: str) -> None:
        """Forget one connection that `enter` counted as `subject`."""
        self._total -= 1
        self._counts[subject] -= 1
        if not self._counts[subject]:
            del self._counts[subject]

    def sweep(self, connections: Collection["Connection"], now_s: float) -> None:
        """End overdue connections; if connections run short, note which of them have rested longest."""
        for connection in connections:
            connection.end_if_overdue(now_s)
        self._evictable.clear()
        if self._total > _NEARLY_FULL * self._limits.connections_max:
            resting = [(since_s, id(each), each) for each in connections if (since_s := each.resting_since_s())]
            resting.sort()
            oldest_s = now_s - _EVICTABLE_AFTER_S
            self._evictable.extend((since_s, each) for since_s, _, each in resting if since_s < oldest_s)

    def _make_room(self) -> bool:
        while self._evictable:
            since_s, connection = self._evictable.popleft()
            # A connection that was used after the sweep is kept.
            if connection.is_open and connection.resting_since_s() == since_s:
                connection.abort("connections")
                return True
        return False

    def _subject_of(self, peer: str | None) -> str:
        """Return the subject that is counted: an IPv4 address or the /64 of an IPv6 address; "" for a trusted proxy."""
        try:
            address = ip_address(peer or "")
        except ValueError:
            return ""  # A UNIX socket, whose file permissions decide who may connect.
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if any(address in network for network in self._limits.trusted_proxies if network.version == address.version):
            return ""
        return address.exploded[:19] if isinstance(address, IPv6Address) else str(address)


class Connection(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 with each response in one piece, strict framing, and limits on what a peer can hold.

    uvicorn's own keep-alive timer is not used: `ConnectionGate.sweep` ends resting connections, whatever bytes a peer
    sends.
    """

    cycle: ResponseCycle | None  # type: ignore[assignment]  # uvicorn's own type
    cycle_class: type[ResponseCycle] = ResponseCycle

    def __init__(self, *args: Any, gate: ConnectionGate, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._gate: Final = gate
        self._subject: str | None = None
        self._head_bytes = 0
        self._receiving_since_s: float | None = None
        self._resting_since_s = self.loop.time()
        self._confirmed_bytes = 0
        self._stalled_since_s: float | None = None
        self._reads_no_more = False
        self._refusal: tuple[HTTPStatus, str] | None = None
        self._hosts_count = 0
        self._unknown_coding = False

    @property
    def is_open(self) -> bool:
        """Whether the peer is still connected, as far as we know."""
        return not self.transport.is_closing()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own type
        super().connection_made(GatheringTransport(transport, self.loop))
        self._subject = self._gate.enter(self.client[0] if self.client else None)
        if self._subject is None:
            self._reads_no_more = True
            self._reset()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._subject is not None:
            self._gate.leave(self._subject)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._reads_no_more:
            return
        self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # We speak no other protocol. RFC 9110, section 7.8, lets a server ignore the request for one. The following
            # bytes may be in that protocol, so they are not read.
            self._stop_reading()
        except httptools.HttpParserError:
            self._refuse(*(self._refusal or (HTTPStatus.BAD_REQUEST, "This is not a valid HTTP/1.1 request.")))
        else:
            if self._head_bytes > HEAD_MAX_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The request line and headers exceed 64 KiB.")

    # The parser's callbacks. An exception ends the parsing; `data_received` then answers with `_refusal`.

    def on_message_begin(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete and len(self.pipeline) >= REQUESTS_MAX - 1:
            _ended.labels("queued_requests").inc()
            raise _RefusedError
        self._receiving_since_s = self.loop.time()
        self._hosts_count = 0
        self._unknown_coding = False
        super().on_message_begin()
        self.scope["extensions"] = _EXTENSIONS  # type: ignore[typeddict-item]  # ASGI lets servers add their own

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in _JUDGED_HEADERS:
            if name == b"host":
                self._hosts_count += 1
            elif name == b"transfer-encoding":
                self._unknown_coding |= value.strip().lower() != b"chunked"
            else:
                self.expect_100_continue = value.lower() == b"100-continue"
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        version = self.parser.get_http_version()
        if version not in _VERSIONS:
            self._refusal = (HTTPStatus.BAD_REQUEST, "This server supports HTTP/1.1 and HTTP/1.0.")
            raise _RefusedError
        if self._hosts_count > 1 or (self._hosts_count == 0 and version == "1.1"):
            # RFC 9112, section 3.2.
            self._refusal = (HTTPStatus.BAD_REQUEST, "A request must have exactly one Host header.")
            raise _RefusedError
        if self._unknown_coding:
            # RFC 9112, section 6.1.
            self._refusal = (HTTPStatus.NOT_IMPLEMENTED, "The only supported transfer coding is chunked.")
            raise _RefusedError
        self._begin_cycle(version)

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._receiving_since_s = None
        super().on_message_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        # uvicorn forgets each task in a callback, which costs one more turn of the loop for each request.
        task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(task)
        cycle.forget_task = functools.partial(self.tasks.discard, task)

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        else:
            self._resting_since_s = self.loop.time()

    # Time limits.

    def resting_since_s(self) -> float | None:
        """Return since when we have been waiting for the peer, on the loop's clock; None while we owe a response."""
        if self._stalled_since_s is not None:
            return self._stalled_since_s
        if self._receiving_since_s is not None:
            return self._receiving_since_s
        return self._resting_since_s if self.cycle is None or self.cycle.response_complete else None

    def end_if_overdue(self, now_s: float) -> None:
        """End the connection of a peer that is too slow to send a request, to read a response, or to send the next."""
        self._note_progress(now_s)
        since_s = self.resting_since_s()
        if self._stalled_since_s is not None and now_s - self._stalled_since_s > STALL_MAX_S:
            self.abort("unread_answer")
        elif since_s is None or self.transport.is_closing():
            return
        elif self._receiving_since_s is not None and now_s - self._receiving_since_s > REQUEST_MAX_S:
            self.abort("slow_request")
        elif self._receiving_since_s is None and now_s - since_s > IDLE_MAX_S:
            self.transport.close()

    def abort(self, limit: str) -> None:
        """End the connection at once, and drop all unsent bytes, ours and the kernel's."""
        _ended.labels(limit).inc()
        self._reset()

    def _note_progress(self, now_s: float) -> None:
        """Note since when the peer has acknowledged none of the written bytes."""
        transport: GatheringTransport = self.transport  # type: ignore[assignment]  # made in `connection_made`
        if transport.written_bytes == self._confirmed_bytes:
            self._stalled_since_s = None
            return
        confirmed_bytes = transport.written_bytes - transport.get_write_buffer_size() - self._in_kernel_bytes()
        if confirmed_bytes != self._confirmed_bytes:
            self._confirmed_bytes = confirmed_bytes
            self._stalled_since_s = None
        if confirmed_bytes < transport.written_bytes and self._stalled_since_s is None:
            self._stalled_since_s = now_s

    def _in_kernel_bytes(self) -> int:
        """Return the number of bytes in the kernel that the peer has not acknowledged."""
        try:
            answer = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
        except OSError:
            return 0  # The socket was closed, or the system cannot tell.
        return int.from_bytes(answer, "little")

    def _reset(self) -> None:
        sock = self.transport.get_extra_info("socket")
        if sock is not None and sock.family in {socket.AF_INET, socket.AF_INET6} and not self.transport.is_closing():
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()

    # The end of reading.

    def _stop_reading(self) -> None:
        """Answer the requests that were read, then close."""
        self._reads_no_more = True
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self.cycle.keep_alive = False

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        """Answer the requests that were read completely, then answer with `status` if it is unambiguous, then close."""
        self._reads_no_more = True
        cycle = self.cycle
        is_resting = cycle is None or cycle.response_complete
        if cycle is not None and not is_resting and not cycle.more_body:
            cycle.keep_alive = False
            return
        if is_resting or (not self.pipeline and cycle is not None and not cycle.response_started):
            self.transport.write(make_refusal(status, text, self.server_state.default_headers))
        self.transport.close()

    def _begin_cycle(self, version: str) -> None:
        """Begin to answer the request whose head was read, or queue it behind the one that is being answered.

        Like uvicorn's own, but without WebSockets and with our `ResponseCycle`.
        """
        parsed = httptools.parse_url(self.url)
        path = parsed.path.decode("ascii")
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]  # a TypedDict of uvicorn's
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        # No route has a path as long as that. Decoding it would cost more than answering 404.
        scope["path"] = urllib.parse.unquote(path) if "%" in path and len(path) <= _PATH_BYTES_MAX else path
        scope["raw_path"] = parsed.path
        scope["query_string"] = parsed.query or b""
        before = self.cycle
        self.cycle = cycle = self.cycle_class(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            # A client that went on with this connection would find it closed when the process ends.
            keep_alive=version != "1.0" and self.parser.should_keep_alive() and DRAINING not in self.app_state,
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))


class _RefusedError(Exception):
    """The end of parsing a request that must be refused; httptools wraps it in an error of its own."""


def limit_memory_of_peers(listening: socket.socket) -> None:
    """Limit the kernel's memory for each connection of this socket, and make it drop peers that do not read."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALL_MAX_S * 1000))
