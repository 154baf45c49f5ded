"""The way from the console to Core, on which a test makes chosen calls fail."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from soundmark.kit.http.responses.problem_documents import PROBLEM_TYPE

_EVERY = "*"


@dataclass(frozen=True)
class _Fault:
    method: str
    path: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_after_the_act: bool = False
    change: Callable[[Any], Any] | None = None
    stream: httpx2.AsyncByteStream | None = None
    is_stalled: bool = False

    def concerns(self, request: httpx2.Request) -> bool:
        return request.method == self.method and self.path in {request.url.path, _EVERY}

    def answer(self) -> httpx2.Response:
        if not self.status:
            raise httpx2.ConnectError("the test lets nothing through")
        return httpx2.Response(
            self.status, headers=dict(self.headers), stream=self.stream or httpx2.ByteStream(self.body)
        )


@dataclass
class HeldAnswer(httpx2.AsyncByteStream):
    """An answer of 200 whose body begins with `start`, and ends when the test lets it, or breaks off with an error.

    `begun` and `left` have an item for each answer that has begun, or was left by its reader before its end.
    """

    start: bytes
    error: httpx2.TransportError | None = None
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    left: asyncio.Queue[None] = field(default_factory=asyncio.Queue)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            yield self.start
            self.begun.put_nowait(None)
            await self.may_end.wait()
            if self.error is not None:
                raise self.error
            yield b"end"
        except (asyncio.CancelledError, GeneratorExit):
            self.left.put_nowait(None)
            raise


class FaultyCore(httpx2.AsyncBaseTransport):
    """Core behind a way that fails where a test says so, and for that call alone. `calls` are all, in order."""

    def __init__(self, beyond: httpx2.AsyncBaseTransport) -> None:
        self.calls: list[httpx2.Request] = []
        self._beyond = beyond
        self._faults: list[_Fault] = []
        self._is_down = False
        self._released = asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.calls.append(request)
        if self._is_down:
            raise httpx2.ConnectError("the test lets nothing through")
        for fault in self._faults:
            if fault.concerns(request):
                if fault.is_stalled:
                    await self._released.wait()
                    break
                if fault.is_after_the_act:
                    await (await self._beyond.handle_async_request(request)).aclose()
                    raise httpx2.ReadError("the test loses the answer")
                if fault.change is not None:
                    return await self._change_answer(request, fault.change)
                return fault.answer()
        return await self._beyond.handle_async_request(request)

    async def aclose(self) -> None:
        await self._beyond.aclose()

    def refuse(self, call: str, status: int, code: str, *, retry_after_s: int | None = None) -> None:
        """Answer a call, such as "POST /v1/campaigns", with a problem."""
        headers = {"content-type": PROBLEM_TYPE}
        if retry_after_s is not None:
            headers["retry-after"] = str(retry_after_s)
        document = {"type": "about:blank", "title": code, "status": status, "detail": "English.", "code": code}
        body = json.dumps({**document, "request_id": "request-of-the-test"}).encode()
        self._add(call, status=status, headers=headers, body=body)

    def answer(self, call: str, status: int, document: Any) -> None:
        """Answer a call with a document of the test."""
        self._add(call, status=status, headers={"content-type": "application/json"}, body=json.dumps(document).encode())

    def answer_page(self, call: str, status: int) -> None:
        """Answer a call with a page of a proxy, which is no document of Core's."""
        self._add(call, status=status, headers={"content-type": "text/html"}, body=b"<h1>Bad gateway</h1>")

    def hold(self, call: str, start: bytes) -> HeldAnswer:
        """Answer a call with a body that begins like this, and goes on when the test lets it."""
        held = HeldAnswer(start)
        self._add(call, status=200, headers={"content-type": "audio/wav"}, stream=held)
        return held

    def alter(self, call: str, change: Callable[[Any], Any]) -> None:
        """Let Core carry a call out, or every call of a method ("GET *"), and change each document that it answers."""
        self._add(call, change=change)

    def stall(self, call: str) -> None:
        """Leave a call without an answer until the test recovers."""
        self._released = asyncio.Event()
        self._add(call, is_stalled=True)

    def lose(self, call: str) -> None:
        """Let a call find nobody."""
        self._add(call)

    def lose_answer(self, call: str) -> None:
        """Let Core carry a call out, and lose its answer."""
        self._add(call, is_after_the_act=True)

    def go_down(self) -> None:
        """Let every call find nobody."""
        self._is_down = True

    @contextlib.contextmanager
    def leading_to(self, beyond: httpx2.AsyncBaseTransport) -> Iterator[None]:
        """Lead to another Core for a while."""
        usual, self._beyond = self._beyond, beyond
        try:
            yield
        finally:
            self._beyond = usual

    def recover(self) -> None:
        """Let every call through again."""
        self._faults.clear()
        self._is_down = False
        self._released.set()

    async def _change_answer(self, request: httpx2.Request, change: Callable[[Any], Any]) -> httpx2.Response:
        response = await self._beyond.handle_async_request(request)
        if "json" not in response.headers.get("content-type", ""):
            return response
        document = json.loads(await response.aread())
        headers = {name: value for name, value in response.headers.items() if name != "content-length"}
        body = json.dumps(change(document)).encode()
        return httpx2.Response(response.status_code, headers=headers, stream=httpx2.ByteStream(body))

    def _add(self, call: str, **answer: Any) -> None:
        method, _, path = call.partition(" ")
        self._faults.append(_Fault(method, path, **answer))
