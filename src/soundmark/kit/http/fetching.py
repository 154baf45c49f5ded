"""Fetching JSON from somebody else's server: a limit on bytes, no redirects, no retries."""

from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import httpx2

from soundmark.kit.http.strict_json import MalformedJson, parse_json
from soundmark.kit.http.tls import make_tls_context
from soundmark.kit.postgres.database import assert_no_transaction


class FetchFailed(Exception):
    """The server did not answer with the expected JSON; `reason` is one of our own words and safe to log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Fetcher:
    """A client for other people's JSON documents.

    `timeout_s` bounds each single wait, `bytes_max` a document while it streams. `kit.http.tls` says whose certificates
    are believed.
    """

    def __init__(self, *, timeout_s: float, bytes_max: int, extra_ca_file: Path | None = None) -> None:
        self._bytes_max: Final = bytes_max
        self._client: Final = httpx2.AsyncClient(
            # Uncompressed, so that the limit on received bytes is also one on memory.
            headers={"accept": "application/json", "accept-encoding": "identity"},
            timeout=httpx2.Timeout(timeout_s),
            verify=make_tls_context(extra_ca_file),
            trust_env=False,
            follow_redirects=False,
        )

    async def json_object(self, url: str) -> dict[str, Any]:
        """Return the JSON object at `url`.

        Raises: FetchFailed.
        """
        assert_no_transaction("a call to somebody else's server")
        try:
            async with self._client.stream("GET", url) as response:
                if response.status_code != HTTPStatus.OK:
                    raise FetchFailed("status")
                body = await self._read(response)
        except httpx2.TimeoutException:
            raise FetchFailed("deadline") from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise FetchFailed("unreachable") from None
        try:
            value = parse_json(body)
        except MalformedJson:
            raise FetchFailed("malformed_json") from None
        if not isinstance(value, dict):
            raise FetchFailed("not_an_object")
        return value

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _read(self, response: httpx2.Response) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.aiter_raw():
            size += len(chunk)
            if size > self._bytes_max:
                raise FetchFailed("oversized")
            chunks.append(chunk)
        return b"".join(chunks)
