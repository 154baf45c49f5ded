"""One request over HTTP with a credential: no redirect, no cookie, no endless body, no endless wait."""

import asyncio
import importlib.metadata
import json
import re
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO, Final, TypeAlias

import httpx2

from soundmark_sdk.client.failures import AnswerMalformed, ApiProblem, RefusedField, ServiceUnreachable
from soundmark_sdk.connecting import could_not_connect, explain_network_failure
from soundmark_sdk.http_exchange import parse_retry_after

# A batch of 100 Codes, each with its intent (16 KiB at most) twice: 3.2 MiB and their other members.
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
# Problem documents name at most some members; a proxy's page may be anything.
PROBLEM_BYTES_MAX: Final = 256 * 1024

_AGENT: Final = f"soundmark-sdk/{importlib.metadata.version('soundmark-sdk')}"
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CODE: Final = re.compile(r"[a-z0-9_]{1,80}")
_CREDENTIAL: Final = re.compile(r"[\x21-\x7e]{1,8192}")

Credential: TypeAlias = str | Callable[[], str]
Progress: TypeAlias = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Call:
    """One request, whole. `is_repeatable` where sending it twice does what sending it once does."""

    method: str
    path: str
    query: Mapping[str, str | int | None] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = False
    accept: str = "application/json"


@dataclass(frozen=True, slots=True)
class Target:
    """Whom calls go to, and as whom. Nothing of it shows the credential."""

    base_url: str
    credential: Credential = field(repr=False)
    transport: httpx2.AsyncBaseTransport = field(repr=False)

    def secret(self) -> str:
        """Return the credential for the next request.

        Raises: ValueError where it can be no header; never with the credential in it.
        """
        given = self.credential if isinstance(self.credential, str) else self.credential()
        if _CREDENTIAL.fullmatch(given) is None:
            raise ValueError("The credential must be 1 to 8192 printable ASCII characters without spaces.")
        return given


def get(path: str, **query: str | int | None) -> Call:
    """Return a GET; parameters that are None are left out."""
    return Call("GET", path, query, is_repeatable=True)


def send(method: str, path: str, document: Any = None, *, is_repeatable: bool = False, **query: str | None) -> Call:
    """Return a request with a JSON body, or without one; parameters that are None are left out."""
    body = None if document is None else write_body(document)
    return Call(method, path, query, body, is_repeatable=is_repeatable)


def write_body(document: Any) -> bytes:
    """Return the JSON of a request.

    Raises: ValueError for what JSON cannot say.
    """
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError):
        # Without a word of the value, which may be a secret.
        raise ValueError("The request cannot be written as JSON.") from None


def segment(identity: str) -> str:
    """Return an id as one segment of a path.

    Raises: ValueError for what would change the path.
    """
    if identity in {"", ".", ".."}:
        raise ValueError("That is no id.")
    return urllib.parse.quote(identity, safe="")


async def fetch(target: Target, call: Call, *, timeout_s: float, now: Callable[[], datetime]) -> bytes:
    """Return the body of a successful answer, read whole within `timeout_s` seconds and `ANSWER_BYTES_MAX` bytes.

    Raises: ApiProblem, ServiceUnreachable, AnswerMalformed. ValueError for an impossible credential.
    """
    body = bytearray()

    def take(chunk: bytes, _: int | None) -> None:
        body.extend(chunk)
        if len(body) > ANSWER_BYTES_MAX:
            raise AnswerMalformed("The service's answer is too large.")

    await _exchange(target, call, take, timeout_s=timeout_s, now=now)
    return bytes(body)


async def download(  # noqa: PLR0913 - two are by name because they are options
    target: Target,
    call: Call,
    into: BinaryIO,
    *,
    on_progress: Progress | None,
    timeout_s: float,
    now: Callable[[], datetime],
) -> int:
    """Write the body of a successful answer into a file as it comes, and return its size in bytes.

    After a failure the file may hold a part of it. `on_progress` is told the bytes so far and in all, where known.

    Raises: as `fetch` does; what writing raises.
    """
    taken = 0

    def take(chunk: bytes, whole: int | None) -> None:
        nonlocal taken
        into.write(chunk)
        taken += len(chunk)
        if on_progress is not None:
            on_progress(taken, whole)

    await _exchange(target, call, take, timeout_s=timeout_s, now=now)
    return taken


async def _exchange(
    target: Target,
    call: Call,
    take: Callable[[bytes, int | None], None],
    *,
    timeout_s: float,
    now: Callable[[], datetime],
) -> None:
    secret = target.secret()
    # The transport itself: an `httpx2.AsyncClient` would keep cookies, read `.netrc` and could follow a redirect, and
    # so hand the credential to whoever a redirect names.
    request = httpx2.Request(
        call.method, _url(target.base_url, call), headers=_headers(call, secret), content=call.body
    )
    try:
        async with asyncio.timeout(timeout_s):
            response = await target.transport.handle_async_request(request)
            try:
                await _read(response, take, secret, now)
            finally:
                await response.aclose()
    except (httpx2.HTTPError, TimeoutError) as error:
        explanation = explain_network_failure(target.base_url, error)
        raise ServiceUnreachable(explanation, was_sent=not could_not_connect(error)) from None


def _url(base_url: str, call: Call) -> str:
    query = {name: str(value) for name, value in call.query.items() if value is not None}
    return f"{base_url}{call.path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")


def _headers(call: Call, secret: str) -> dict[str, str]:
    typed = {} if call.body is None else {"Content-Type": "application/json"}
    return {
        "User-Agent": _AGENT,
        # Compressed bodies are not asked for, so that the ceilings count what was sent and nothing can unfold.
        "Accept-Encoding": "identity",
        # The second, because a problem is answered whatever was asked for.
        "Accept": f"{call.accept}, application/problem+json;q=0.1",
        "Authorization": f"Bearer {secret}",
        **typed,
        **call.headers,
    }


async def _read(
    response: httpx2.Response,
    take: Callable[[bytes, int | None], None],
    secret: str,
    now: Callable[[], datetime],
) -> None:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise AnswerMalformed("The service's answer is encoded in a way that was not asked for.")
    if response.is_error:
        raise await _problem(response, secret, now)
    if not response.is_success:
        raise AnswerMalformed("The service answered with a redirect, which is never followed.")
    length = response.headers.get("content-length", "")
    whole = int(length) if length.isascii() and length.isdigit() else None
    async for chunk in response.aiter_raw():
        take(chunk, whole)


async def _problem(response: httpx2.Response, secret: str, now: Callable[[], datetime]) -> ApiProblem:
    """What an error status stands for, whatever the body is."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > PROBLEM_BYTES_MAX:
            body.clear()
            break
    document = _problem_document(response, bytes(body))
    code = document.get("code")
    request_id = document.get("request_id") or response.headers.get("x-request-id")
    is_known = isinstance(code, str) and _CODE.fullmatch(code) is not None
    return ApiProblem(
        response.status_code,
        str(code) if is_known else "unknown",
        _text(document.get("detail"), secret) if is_known else "The service answered without a problem document.",
        errors=tuple(_refused_fields(document.get("errors"), secret)) if is_known else (),
        request_id=request_id if isinstance(request_id, str) and _REQUEST_ID.fullmatch(request_id) else None,
        retry_after_s=parse_retry_after(response.headers.get("retry-after"), now()),
    )


def _problem_document(response: httpx2.Response, body: bytes) -> Mapping[str, Any]:
    if response.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/problem+json":
        return {}
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _refused_fields(errors: Any, secret: str) -> list[RefusedField]:
    members = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    return [
        RefusedField(*(_text(error.get(name), secret) for name in ("location", "pointer", "message")))
        for error in members
    ]


def _text(value: Any, secret: str) -> str:
    # A service never repeats a credential; what stands between us and it might.
    return value.replace(secret, "[credential]") if isinstance(value, str) else ""
