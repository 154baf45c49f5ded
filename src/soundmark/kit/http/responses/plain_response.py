"""The responses of a plain ASGI endpoint, which answers in front of the framework."""

from collections.abc import Awaitable
from typing import Final

from soundmark.kit.http.asgi import Header, Scope, Send
from soundmark.kit.http.responses.problem_documents import PROBLEM_TYPE, problem_document
from soundmark.kit.http.responses.problems import Problem

# An ASGI message of our own: `head` is the headers as bytes, without the empty line, and `body` is the whole body. A
# server that accepts it names it in `scope["extensions"]`.
WHOLE_RESPONSE: Final = "soundmark.whole_response"

JSON_TYPE: Final = (b"content-type", b"application/json")
REQUEST_ID: Final = (b"x-request-id", b"%b")  # A template, for heads that are rendered before there is a request.

_COMMON_HEADERS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_PROBLEM_TYPE: Final = (b"content-type", PROBLEM_TYPE.encode())


class PlainResponses:
    """Sends the responses of one endpoint: documents that have a rendered head, and problems."""

    def __init__(self, base_url: str, *headers: Header) -> None:
        """`headers` are those of every response, besides the common ones."""
        self._base_url: Final = base_url
        self._headers: Final = (*_COMMON_HEADERS, *headers)

    def render_head(self, *headers: Header) -> bytes:
        """Return the head of a response with more `headers` as bytes."""
        return b"".join(b"%b: %b\r\n" % header for header in (*self._headers, *headers))

    async def send_problem(self, send: Send, problem: Problem, request_id: str, *headers: Header) -> None:
        """Send a problem document with more `headers`."""
        body = problem_document(problem, base_url=self._base_url, request_id=request_id)
        of_problem = [(name.encode(), value.encode()) for name, value in problem.headers.items()]
        identity = (b"x-request-id", request_id.encode())
        whole = [*self._headers, identity, *headers, _PROBLEM_TYPE, *of_problem, _length_of(body)]
        await _send(send, int(problem.kind), whole, body)


def send_document(scope: Scope, send: Send, status: int, head: bytes, body: bytes) -> Awaitable[None]:
    """Send a document whose head lacks only its length."""
    if WHOLE_RESPONSE in scope.get("extensions", ()):
        head += b"content-length: %d\r\n" % len(body)
        return send({"type": WHOLE_RESPONSE, "status": status, "head": head, "body": body})
    lines = (line.partition(b": ") for line in head.splitlines())
    return _send(send, status, [*((name, value) for name, _, value in lines), _length_of(body)], body)


def _length_of(body: bytes) -> Header:
    return (b"content-length", b"%d" % len(body))


async def _send(send: Send, status: int, headers: list[Header], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
