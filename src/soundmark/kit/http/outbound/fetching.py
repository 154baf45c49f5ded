"""Fetching JSON from somebody else's server: a limit on time and bytes, no redirects, no retries."""

from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from soundmark.kit.http.outbound.client import OutboundClient, OutboundRequest, RequestLost
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json


class FetchFailed(Exception):
    """The server did not answer with the expected JSON; `reason` is one of our own words and safe to log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Fetcher:
    """A client for other people's JSON documents; `timeout_s` and `bytes_max` bound each of them."""

    def __init__(self, *, timeout_s: float, bytes_max: int, extra_ca_file: Path | None = None) -> None:
        self._timeout_s: Final = timeout_s
        self._client: Final = OutboundClient(bytes_max=bytes_max, extra_ca_file=extra_ca_file)

    async def json_object(self, url: str) -> dict[str, Any]:
        """Return the JSON object at `url`.

        Raises: FetchFailed.
        """
        try:
            response = await self._client.send(OutboundRequest("GET", url, {}), timeout_s=self._timeout_s)
        except RequestLost as lost:
            raise FetchFailed(lost.reason) from None
        if response.status != HTTPStatus.OK:
            raise FetchFailed("status")
        try:
            value = parse_json(response.body)
        except MalformedJson:
            raise FetchFailed("malformed_json") from None
        if not isinstance(value, dict):
            raise FetchFailed("not_an_object")
        return value

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
