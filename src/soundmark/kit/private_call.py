"""Calls to a private component: one deadline for the whole call, a ceiling on bytes, a credential, no retries."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal

import httpx2

from soundmark.kit.postgres import assert_no_transaction
from soundmark.kit.secret import Secret

JSON_TYPE: Final = "application/json"
PROBLEM_TYPE: Final = "application/problem+json"

# Shorter than the five seconds after which uvicorn hangs up on an idle connection, perhaps as we send.
_IDLE_S: Final = 2.0

Method = Literal["GET", "PATCH", "POST", "PUT"]
Query = Mapping[str, str | int | None]


class PrivateCallFailed(Exception):  # noqa: N818 - named for what was found
    """The component did not answer as agreed: unreachable, late, oversized, or something else than it should be.

    `reason` is one of our own words and safe to log.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class PrivateAnswer:
    """A whole answer: its status, its media type without parameters, its body, and when to ask again if it says so."""

    status: int
    media_type: str
    body: bytes
    retry_after: str | None = None

    def json_object(self) -> dict[str, Any]:
        """The body as one JSON object.

        Raises: PrivateCallFailed for anything else.
        """
        if self.media_type not in {JSON_TYPE, PROBLEM_TYPE}:
            raise PrivateCallFailed("not_json")
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            raise PrivateCallFailed("malformed_json") from None
        if not isinstance(value, dict):
            raise PrivateCallFailed("not_an_object")
        return value


class PrivateChannel:
    """A client of one private component.

    `timeout_s` bounds the whole call, connecting and reading included; `bytes_max` bounds the body while it streams.
    """

    def __init__(self, url: str, credential: Secret, *, timeout_s: float, bytes_max: int) -> None:
        self._credential: Final = credential
        self._timeout_s: Final = timeout_s
        self._bytes_max: Final = bytes_max
        self._client: Final = httpx2.AsyncClient(
            base_url=url,
            # What comes is taken as it is, so that the ceiling is on what is held.
            headers={"accept-encoding": "identity"},
            timeout=httpx2.Timeout(timeout_s),
            limits=httpx2.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=_IDLE_S),
            trust_env=False,
            follow_redirects=False,
        )

    async def post(
        self, path: str, payload: Mapping[str, Any], *, request_id: str, operation_id: str | None = None
    ) -> PrivateAnswer:
        """POST a JSON object and read the whole answer.

        Raises: PrivateCallFailed.
        """
        return await self.send("POST", path, payload, request_id=request_id, operation_id=operation_id)

    async def send(  # noqa: PLR0913 - one argument for each part of a request
        self,
        method: Method,
        path: str,
        payload: Mapping[str, Any] | None = None,
        *,
        query: Query | None = None,
        request_id: str,
        operation_id: str | None = None,
    ) -> PrivateAnswer:
        """Carry out a request, with a JSON object as its body where there is a `payload`; the whole answer.

        What is None in `query` is left out of it. A path must have been put together from ids that were checked.

        Raises: PrivateCallFailed.
        """
        headers = {}
        if operation_id is not None:
            headers["x-svc-operation-id"] = operation_id
        content = None
        if payload is not None:
            headers["content-type"] = JSON_TYPE
            content = json.dumps(payload).encode()
        headers |= self._authority()
        return await self._call(method, path, content, query, headers, request_id)

    async def forward(
        self, path: str, content: bytes, headers: Mapping[str, str], *, query: Query | None = None, request_id: str
    ) -> PrivateAnswer:
        """POST bytes as they are, with these headers, to a route that anybody may call.

        Our credential goes with them, by which the component knows who hands them on.

        Raises: PrivateCallFailed.
        """
        return await self._call("POST", path, content, query, {**headers, **self._authority()}, request_id)

    async def is_ready(self) -> bool:
        """Whether the component says of itself that it is ready."""
        try:
            answer = await self.send("GET", "/readyz", request_id="readyz")
        except PrivateCallFailed:
            return False
        return answer.status == HTTPStatus.OK

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    def _authority(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._credential.reveal()}"}

    async def _call(  # noqa: PLR0913, PLR0917 - one argument for each part of a request
        self,
        method: Method,
        path: str,
        content: bytes | None,
        query: Query | None,
        headers: Mapping[str, str],
        request_id: str,
    ) -> PrivateAnswer:
        assert_no_transaction("a private call")
        params = {name: value for name, value in (query or {}).items() if value is not None}
        headers = {**headers, "x-request-id": request_id}
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._client.stream(method, path, content=content, params=params or None, headers=headers) as response,
            ):
                body = await self._read(response)
        except TimeoutError:
            raise PrivateCallFailed("deadline") from None
        except httpx2.TimeoutException:
            raise PrivateCallFailed("deadline") from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise PrivateCallFailed("unreachable") from None
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return PrivateAnswer(response.status_code, media_type, body, response.headers.get("retry-after"))

    async def _read(self, response: httpx2.Response) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.aiter_raw():
            size += len(chunk)
            if size > self._bytes_max:
                raise PrivateCallFailed("oversized")
            chunks.append(chunk)
        return b"".join(chunks)
