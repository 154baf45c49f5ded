"""Requests made to be expensive, sent to an app without a client, and the processor time that they cost."""

import asyncio
import gc
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from soundmark.kit.http.asgi import AsgiApp, Message

# The size of a hostile query or header: the largest that a request head has room for, with what else is in it.
HEAD_BYTES: Final = 57_000
FORM_TYPE: Final = "application/x-www-form-urlencoded"
# A hostile request may cost four times as much as a valid one of its size, and this much more: three decodings of 8 KiB
# of percent-encoding, the largest query that Core accepts, of 0.5 ms each on a slow core. Without the limits, a query
# of 57 KB cost 5 to 12 ms.
TIMES_MAX: Final = 4
ALLOWANCE_S: Final = 0.0015
_ROUNDS_MAX: Final = 12
_peers: Final = itertools.count()


@dataclass(frozen=True)
class RawRequest:
    """One request, with its query, headers and body as they are on the wire."""

    method: str
    path: str
    query: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def with_header(self, name: str, value: str) -> "RawRequest":
        """Return the request with one more header."""
        return replace(self, headers=(*self.headers, (name, value)))

    def with_query(self, more: bytes) -> "RawRequest":
        """Return the request with more in its query."""
        return replace(self, query=b"&".join(filter(None, (self.query, more))))

    def with_body(self, media_type: str, body: bytes) -> "RawRequest":
        """Return the request with a body."""
        sent = self.with_header("content-type", media_type).with_header("content-length", str(len(body)))
        return replace(sent, body=body)


# What can be hostile in the head of any request; several at once, as large as a whole head each.
HOSTILE_HEADS: Final[Mapping[str, Callable[[RawRequest], RawRequest]]] = {
    "escapes": lambda request: (
        request.with_query(b"a=" + b"%41" * (HEAD_BYTES // 3))
        .with_header("cookie", '_="' + "\\101" * (HEAD_BYTES // 4) + '"')
        .with_header("accept-language", "a" * HEAD_BYTES)
    ),
    "escapes in a name": lambda request: (
        request.with_query(b"%41" * (HEAD_BYTES // 3))
        .with_header("cookie", "soundmark-8083-session=" + "\\101" * (HEAD_BYTES // 4))
        .with_header("accept", "a/b;" * (HEAD_BYTES // 4))
    ),
    "pairs": lambda request: (
        request.with_query(b"a=1&" * (HEAD_BYTES // 4))
        .with_header("cookie", "a=b;" * (HEAD_BYTES // 4))
        .with_header("accept", "a/b," * (HEAD_BYTES // 4))
        .with_header("accept-language", "en," * (HEAD_BYTES // 3))
        .with_header("x-forwarded-for", "10.0.0.1," * (HEAD_BYTES // 9))
    ),
    "the longest query that is read": lambda request: request.with_query(b"a=" + b"%41" * 2600),
}


def pad(request: RawRequest) -> RawRequest:
    """Return a request of the size of the hostile ones, with nothing in it that anybody reads."""
    return request.with_header("x-padding", "a" * HEAD_BYTES)


def make_form(size_bytes: int, **fields: str) -> bytes:
    """Return a form of this size: an intent in JSON beside the fields."""
    begin = urlencode({**fields, "intent": ""})
    item = urlencode({"": '{"type": "song", "title": "Straße"}, '})[1:]
    return (begin + item * (size_bytes // len(item))).encode()[:size_bytes].rpartition(b"%")[0]


def make_hostile_form(size_bytes: int, **fields: str) -> bytes:
    """Return a form of this size that is nothing but escapes."""
    return (urlencode({**fields, "intent": ""}) + "%41" * (size_bytes // 3)).encode()[: size_bytes // 3 * 3 - 3]


async def send_raw(app: AsgiApp, request: RawRequest) -> tuple[int, bytes]:
    """Send a request from an address of its own on this machine; return the status and the body of the answer."""
    number = next(_peers)
    status, chunks = 0, []
    messages = iter([{"type": "http.request", "body": request.body, "more_body": False}])

    async def receive() -> Message:
        message = next(messages, None)
        if message is None:
            await asyncio.Event().wait()
        assert message is not None, "only a disconnect would follow"
        return message

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            chunks.append(message.get("body", b""))

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode(),
        "root_path": "",
        "query_string": request.query,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in request.headers],
        "client": (f"127.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 40000),
        "server": ("127.0.0.1", 8080),
    }
    await app(scope, receive, send)
    return status, b"".join(chunks)


async def measure_processor_s(
    app: AsgiApp, requests: Sequence[RawRequest], *, rounds: int = _ROUNDS_MAX, until: Callable[[list[float]], bool]
) -> list[float]:
    """Return the least processor time of this process for each request, sent in turns until the times are as wanted."""
    # As `kit.http.server.serve` does: a collection would walk everything that earlier tests left. It stays frozen;
    # thawing it would thaw the collected tests too, and slow down every test that follows.
    gc.collect()
    gc.freeze()
    least_s = [math.inf] * len(requests)
    for _ in range(rounds):
        for number, request in enumerate(requests):
            started_s = time.process_time()
            await send_raw(app, request)
            least_s[number] = min(least_s[number], time.process_time() - started_s)
        if until(least_s):
            break
    return least_s


async def find_costly(
    app: AsgiApp, valid: RawRequest, hostile: Mapping[str, RawRequest]
) -> dict[str, tuple[float, float]]:
    """Return the requests that cost too much beside the valid one, with the processor time of both in milliseconds."""

    def is_cheap(least_s: list[float]) -> bool:
        return max(least_s[1:]) <= TIMES_MAX * least_s[0] + ALLOWANCE_S

    valid_s, *hostile_s = await measure_processor_s(app, [valid, *hostile.values()], until=is_cheap)
    return {
        name: (round(valid_s * 1e3, 2), round(each_s * 1e3, 2))
        for name, each_s in zip(hostile, hostile_s, strict=True)
        if each_s > TIMES_MAX * valid_s + ALLOWANCE_S
    }
