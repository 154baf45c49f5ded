"""Peers that want to stop Core, and peers that only want to resolve; each a process of its own beside Core.

`python -m bench.hostile hostile PORT SECONDS TOKEN`: 2,000 connections of eight kinds, each kind from an address of its
own. A connection that the server ends is begun again 5 to 15 seconds later. Prints how often each kind was begun
and ended.

`python -m bench.hostile forms PORT SECONDS COUNT`: so many forms at the local provider's webhook, evenly within that
time, without a credential: of 64 KiB and of a mebibyte, all escapes. Prints how often each status was answered.

`python -m bench.hostile honest PORT SECONDS PATHS`: 64 receivers, each of which resolves twenty times a second. Prints
the 50th and 99th percentile of their waiting times, and how many were not answered 200.
"""

import asyncio
import contextlib
import json
import random
import resource
import socket
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

KINDS_COUNT: Final = 8
_PEERS_OF_A_KIND: Final = 250
_AGAIN_S: Final = 10.0
_SPREAD_S: Final = 5.0  # Earlier or later, at random: peers of a kind do not act in step.
_BEGIN_S: Final = 2.0
_DROP_S: Final = 5.0
_UNREAD_S: Final = 33.0  # Longer than the server waits for a reader.
_ESTABLISHED: Final = b"\x01"  # The first member of Linux's `struct tcp_info`.
_HONEST: Final = 64
_PAUSE_S: Final = 0.05
_MIB: Final = 1024 * 1024
_GET: Final = b"GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n"
_POST: Final = b"POST %b HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %b\r\nContent-Type: application/json\r\n"
_FORM: Final = (
    b"POST /v1/billing/webhooks/local HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n"
)
_CLIENT_HELLO: Final = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _until_ended(reader: asyncio.StreamReader) -> None:
    while await reader.read(65536):
        pass


async def _dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, begun: bytes, drop: bytes) -> None:
    """Send `begun`, then a drop every few seconds, for as long as the server allows."""
    writer.write(begun)
    ended = asyncio.create_task(_until_ended(reader))
    try:
        while not ended.done():
            await asyncio.wait([ended], timeout=_DROP_S)
            writer.write(drop)
            await writer.drain()
        await ended
    finally:
        ended.cancel()


async def slow_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _dripping(reader, writer, b"GET / HTTP/1.1\r\nHost: bench\r\nX-Slow: ", b"a")


async def slow_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _dripping(reader, writer, _POST % (b"/v1/events", b"-") + b"Content-Length: 9999\r\n\r\n{", b" ")


async def carriage_return(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _dripping(reader, writer, _GET, b"\r")


async def unread(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ask for the largest public document and read none of it."""
    sock = writer.get_extra_info("socket")
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # every socket's transport has it
    writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: bench\r\n\r\n")
    await asyncio.sleep(_UNREAD_S)
    # Our kernel drops a reset that arrives while nothing is read; one more byte makes the server send it again.
    while sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == _ESTABLISHED:
        writer.write(b"\r")
        await asyncio.sleep(1)
    raise ConnectionResetError


async def pipeline(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_GET * 3000)
    await _until_ended(reader)


async def half_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"POST /v1/events HTTP/1.1\r\nHost: bench\r\nContent-Length: 100\r\n\r\n{")
    writer.write_eof()
    await _until_ended(reader)


def invalid_bodies(token: bytes) -> Peer:
    """Post bodies that are too large, and bodies of the maximum size that are all wrong; read the responses."""
    members = b",".join(b'"a%d":1' % number for number in range(200_000))
    bodies = (b"{" + members[:_MIB] + b"}", b"{" + members[: members.rindex(b",", 0, 60_000)] + b"}")
    requests = [
        _POST % (b"/v1/organizations", token) + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        for body in bodies
    ]
    turn = iter(range(sys.maxsize))

    async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(requests[next(turn) % len(requests)])
        await _until_ended(reader)

    return post


async def tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_CLIENT_HELLO)
    await _until_ended(reader)


async def _keep_attacking(port: int, source: str, peer: Peer, counts: Counter[str]) -> None:
    while True:
        writer = None
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0), limit=65536)
            counts["begun"] += 1
            await peer(reader, writer)
            counts["ended by the server"] += 1
        except ConnectionError:
            counts["reset by the server"] += 1
        except OSError as error:
            counts[f"not connected: {error.strerror}"] += 1
        finally:
            if writer is not None:
                writer.transport.abort()
        await asyncio.sleep(_AGAIN_S + random.uniform(-_SPREAD_S, _SPREAD_S))  # noqa: S311 - no secret


async def attack(port: int, seconds: float, token: str) -> dict[str, dict[str, int]]:
    """Attack for this many seconds; return what happened to each kind of peer."""
    kinds: dict[str, Peer] = {
        "slow head": slow_head,
        "slow body": slow_body,
        "CR after a request": carriage_return,
        "unread answer": unread,
        "pipeline": pipeline,
        "half-closed": half_closed,
        "huge invalid body": invalid_bodies(token.encode()),
        "TLS": tls,
    }
    assert len(kinds) == KINDS_COUNT, "as the issue counts them"
    counts: dict[str, Counter[str]] = {name: Counter() for name in kinds}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
            for number, (name, peer) in enumerate(kinds.items(), 1):
                for _ in range(_PEERS_OF_A_KIND):
                    tasks.create_task(_keep_attacking(port, f"127.0.1.{number}", peer, counts[name]))
                # One kind after the other, within two seconds: their presence is measured, not their arrival.
                await asyncio.sleep(_BEGIN_S / KINDS_COUNT)
    return {name: dict(count) for name, count in counts.items()}


def _hostile_forms() -> list[bytes]:
    """Return two forms of up to 64 KiB, with one field and with as many as are read, and one of a mebibyte."""
    bodies = (
        b"payment_id=" + b"%41" * 21_800,
        b"&".join([b"%69d=" + b"%41" * 120] * 64),
        b"payment_id=" + b"%41" * 349_000,
    )
    return [_FORM % len(body) + body for body in bodies]


async def _post_form(port: int, request: bytes, statuses: Counter[str]) -> None:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.1.1", 0))
        try:
            writer.write(request)
            statuses[(await reader.readline())[9:12].decode()] += 1
        finally:
            writer.transport.abort()
    except ConnectionError:
        statuses["reset by the server"] += 1


async def post_forms(port: int, seconds: float, count: int) -> dict[str, int]:
    """Post so many hostile forms, evenly within this time; return how often each status was answered."""
    requests, statuses, began_s = _hostile_forms(), Counter[str](), time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            await asyncio.sleep(max(0.0, began_s + number * seconds / count - time.perf_counter()))
            tasks.create_task(_post_form(port, requests[number % len(requests)], statuses))
    return dict(statuses)


async def _resolve(port: int, paths: list[str], until_s: float, waits_s: list[float], failures: Counter[str]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for path in paths:
        began_s = time.perf_counter()
        if began_s > until_s:
            break
        writer.write(b"GET %b HTTP/1.1\r\nHost: bench\r\nX-Svc-Resolution-Proof: ed25519-v1\r\n\r\n" % path.encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        waits_s.append(time.perf_counter() - began_s)
        if not head.startswith(b"HTTP/1.1 200"):
            failures[head[:12].decode()] += 1
        await asyncio.sleep(max(0.0, _PAUSE_S - waits_s[-1]))
    writer.close()


async def resolve(port: int, seconds: float, paths: list[str]) -> dict[str, float]:
    """Resolve for this many seconds; return the percentiles in milliseconds, and the count."""
    waits_s: list[float] = []
    failures: Counter[str] = Counter()
    until_s = time.perf_counter() + seconds
    enough = int(seconds / _PAUSE_S) + 1
    async with asyncio.TaskGroup() as tasks:
        for number in range(_HONEST):
            own = [paths[(number * 7919 + place) % len(paths)] for place in range(enough)]
            tasks.create_task(_resolve(port, own, until_s, waits_s, failures))
            await asyncio.sleep(_PAUSE_S / _HONEST)  # Spread over the pause, not all at once.
    waits_s.sort()
    p50, p99 = (waits_s[int(len(waits_s) * part)] * 1e3 for part in (0.5, 0.99))
    return {"p50_ms": p50, "p99_ms": p99, "count": len(waits_s), "failures": failures.total()}


def main() -> None:
    """Be one of the three."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    role, port, seconds, last = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    if role == "hostile":
        sys.stdout.write(json.dumps(asyncio.run(attack(port, seconds, last))))
    elif role == "forms":
        sys.stdout.write(json.dumps(asyncio.run(post_forms(port, seconds, int(last)))))
    else:
        sys.stdout.write(
            json.dumps(asyncio.run(resolve(port, seconds, Path(last).read_text(encoding="utf-8").split())))
        )


if __name__ == "__main__":
    main()
