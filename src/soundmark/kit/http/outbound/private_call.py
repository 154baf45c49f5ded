"""Calls to a private component: a deadline for the whole call, a limit on bytes, a credential, no retries."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx2
import msgspec
import structlog
from pydantic import BaseModel, ValidationError

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.outbound.tls import share_tls_context
from soundmark.kit.http.requests.private_endpoint import JSON_TYPE, PrivateEndpoint
from soundmark.kit.http.requests.private_headers import CALLER_HEADER, OPERATION_HEADER, TIMEOUT_HEADER, write_timeout
from soundmark.kit.http.responses.problems import ERRORS_MAX, FieldError, Location, Problem, Unauthenticated
from soundmark.kit.open_transaction import assert_no_transaction
from soundmark.kit.tracing.context import outgoing_headers
from soundmark.kit.tracing.spans import enter_child

PROBLEM_TYPE: Final = "application/problem+json"

# Shorter than the five seconds after which uvicorn closes an idle connection, perhaps while we send.
_IDLE_S: Final = 2.0
_READINESS: Final = PrivateEndpoint("GET", "/readyz", bytes)
_log: Final = structlog.get_logger()

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", bound=BaseModel | bytes)


class _CallFailed(Exception):
    """No response came, for a `reason` in our own words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Fault(msgspec.Struct, frozen=True):
    """A refused member or parameter, as a problem document names it."""

    pointer: str
    message: str
    location: Location = "body"


class _ProblemDocument(msgspec.Struct, frozen=True):
    """The members that are read from an RFC 9457 document, which may have others."""

    code: str
    errors: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class PrivateComponent:
    """A component as its callers see it: its URL, its credential, its name in the log, and its failure.

    `cell` tells several components of one name apart in the log.
    """

    name: str
    url: str
    credential: Secret
    unavailable: type[Problem]
    cell: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateRequest:
    """The parameters and body of one call.

    `path` fills the template of the endpoint and must hold checked ids. `body` is a closed shape, or bytes that are
    forwarded unchanged. Parameters that are None are left out of `query`. `operation_id` is sent with every mutation
    that must happen only once.
    """

    request_id: str
    operation_id: str | None = None
    path: Mapping[str, str] = field(default_factory=dict)
    query: BaseModel | Mapping[str, str] | None = None
    body: BaseModel | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PrivateResponse:
    """A whole response; `media_type` is without parameters."""

    status: int
    media_type: str
    body: bytes
    retry_after: str | None = None


class PrivateChannel:
    """A client of one private component.

    `caller` names this process to the component. `timeout_s` bounds the whole call, connecting and reading included,
    and travels with it; `bytes_max` bounds the body while it streams.

    A response that the endpoint does not declare, or none in time, is the component's failure: it is logged with a
    reason in our own words and raised as the component's `unavailable` problem. The component may have acted anyway.
    """

    def __init__(
        self,
        component: PrivateComponent,
        *,
        caller: str,
        timeout_s: float,
        bytes_max: int,
        extra_ca_file: Path | None = None,
    ) -> None:
        self._component: Final = component
        self._caller: Final = caller
        self._timeout_s: Final = timeout_s
        self._bytes_max: Final = bytes_max
        self._client: Final = httpx2.AsyncClient(
            base_url=component.url,
            # Nothing is decompressed, so that the limit on bytes is one on memory.
            headers={"accept-encoding": "identity"},
            timeout=httpx2.Timeout(timeout_s),
            limits=httpx2.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=_IDLE_S),
            verify=share_tls_context(extra_ca_file),
            trust_env=False,
            follow_redirects=False,
        )

    async def call(self, endpoint: PrivateEndpoint[M], request: PrivateRequest) -> M:
        """Call `endpoint` and read its closed response.

        Raises: a problem that the endpoint declares; the component's `unavailable` problem.
        """
        return self.read(endpoint.response, (await self.fetch(endpoint, request)).body)

    async def fetch(self, endpoint: PrivateEndpoint[R], request: PrivateRequest) -> PrivateResponse:
        """Call `endpoint` and return its successful response.

        Raises: as `call`.
        """
        assert_no_transaction("a private call")
        try:
            response = await self._exchange(endpoint, request)
        except _CallFailed as failed:
            raise self.fail(failed.reason) from None
        if response.status in endpoint.statuses and response.media_type == endpoint.media_type:
            return response
        raise _find_declared(endpoint, response) or self.fail("refused", response.status)

    def read(self, shape: type[M], body: bytes) -> M:
        """Read a closed shape.

        Raises: the component's `unavailable` problem.
        """
        try:
            return shape.model_validate_json(body)
        except ValidationError:
            # Without the library's text, which may repeat the response.
            raise self.fail("malformed") from None

    def fail(self, reason: str, status: int | None = None) -> Problem:
        """Log why the component failed, and return the problem to raise."""
        cell = {} if self._component.cell is None else {"cell": self._component.cell}
        _log.warning(f"{self._component.name}_call_failed", reason=reason, status=status, **cell)
        return self._component.unavailable()

    async def is_ready(self) -> bool:
        """Return whether the component reports itself ready."""
        try:
            response = await self._exchange(_READINESS, PrivateRequest(request_id="readyz"))
        except _CallFailed:
            return False
        return response.status in _READINESS.statuses

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _exchange(self, endpoint: PrivateEndpoint[R], request: PrivateRequest) -> PrivateResponse:
        """Send a request and read the whole response, whatever it is.

        Raises: _CallFailed.
        """
        name = f"{endpoint.method} {endpoint.path}"
        attributes = {
            "http.request.method": endpoint.method,
            "url.template": endpoint.path,
            "peer.service": self._component.name,
        }
        with enter_child(name, "client", attributes) as place:
            response = await self._send(endpoint, request)
            place.note({"http.response.status_code": response.status})
        return response

    async def _send(self, endpoint: PrivateEndpoint[R], request: PrivateRequest) -> PrivateResponse:
        """Raises: _CallFailed."""
        sending = self._client.stream(
            endpoint.method,
            endpoint.path.format_map(request.path),
            content=_write_body(request.body),
            params=_write_query(request.query),
            headers=self._headers(request),
        )
        try:
            # The client's own timeout bounds each step; this one bounds their sum.
            async with asyncio.timeout(self._timeout_s), sending as response:
                body = await self._read_body(response)
        except (TimeoutError, httpx2.TimeoutException):
            raise _CallFailed("deadline") from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise _CallFailed("unreachable") from None
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return PrivateResponse(response.status_code, media_type, body, response.headers.get("retry-after"))

    def _headers(self, request: PrivateRequest) -> dict[str, str]:
        headers = dict(request.headers)
        if isinstance(request.body, BaseModel):
            headers["content-type"] = JSON_TYPE
        if request.operation_id is not None:
            headers[OPERATION_HEADER] = request.operation_id
        return headers | {
            "authorization": f"Bearer {self._component.credential.reveal()}",
            "x-request-id": request.request_id,
            TIMEOUT_HEADER: write_timeout(self._timeout_s),
            CALLER_HEADER: self._caller,
            **outgoing_headers(),
        }

    async def _read_body(self, response: httpx2.Response) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.aiter_raw():
            size += len(chunk)
            if size > self._bytes_max:
                raise _CallFailed("oversized")
            chunks.append(chunk)
        return b"".join(chunks)


def _find_declared(endpoint: PrivateEndpoint[R], response: PrivateResponse) -> Problem | None:
    """Return the problem that the response states, if the endpoint declares it."""
    if response.media_type != PROBLEM_TYPE:
        return None
    try:
        document = msgspec.json.decode(response.body, type=_ProblemDocument)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    for problem in endpoint.problems:
        if (problem.code, int(problem.kind)) == (document.code, response.status):
            return _copy_problem(problem, document, response.retry_after)
    return None


def _copy_problem(problem: type[Problem], document: _ProblemDocument, retry_after: str | None) -> Problem:
    if issubclass(problem, Unauthenticated):
        return problem()
    headers = {"retry-after": retry_after} if retry_after is not None and retry_after.isdecimal() else {}
    return problem(errors=tuple(_read_faults(document)), headers=headers)


def _read_faults(document: _ProblemDocument) -> Iterator[FieldError]:
    """Yield the faults that have the right shape. A component names members and parameters, never their values."""
    for each in document.errors[:ERRORS_MAX]:
        with contextlib.suppress(msgspec.ValidationError):
            fault = msgspec.convert(each, _Fault)
            yield FieldError(fault.location, fault.pointer, fault.message)


def _write_body(body: BaseModel | bytes | None) -> bytes | None:
    return body.model_dump_json(by_alias=True).encode() if isinstance(body, BaseModel) else body


def _write_query(query: BaseModel | Mapping[str, str] | None) -> Mapping[str, str | int] | None:
    if isinstance(query, BaseModel):
        return query.model_dump(mode="json", by_alias=True, exclude_none=True)
    return query or None
