"""Fetching JSON from somebody else's server: a limit on bytes, no redirects, no retries."""

from http import HTTPStatus
from typing import Any, Final

import httpx2

from soundmark.kit.http.strict_json import MalformedJson, parse_json
from soundmark.kit.postgres.database import assert_no_transaction


class FetchFailed(Exception):
    """The server did not answer with the expected JSON; `reason` is one of our own words and safe to log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Fetcher:
    """A client for other people's JSON documents.

    `timeout_s` bounds each single wait, `bytes_max` a document while it streams. Certificates are checked against the
    authorities that the operating system trusts, or against `SSL_CERT_FILE` if that is set.
    """

    def __init__(self, *, timeout_s: float, bytes_max: int) -> None:
        self._bytes_max: Final = bytes_max
        self._client: Final = httpx2.AsyncClient(
            # Uncompressed, so that the limit on received bytes is also one on memory.
            headers={"accept": "application/json", "accept-encoding": "identity"},
            timeout=httpx2.Timeout(timeout_s),
            verify=httpx2.create_ssl_context(),
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
