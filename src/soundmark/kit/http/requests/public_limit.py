"""Rate limits of routes that need no credential, which tell every client how much is left."""

from typing import Final

import structlog

from soundmark.kit.http.limits.local import RateLimit
from soundmark.kit.http.responses.problems import RateLimited

_log: Final = structlog.get_logger()


class PublicRateLimit:
    """A counter of the requests to some routes by client IP address, which is known by its digest.

    `name` is the limit's name in the headers of responses and in the log.
    """

    def __init__(self, name: str, limit: RateLimit, *, quota: int, window_s: int) -> None:
        self._name: Final = name
        self._limit: Final = limit
        self._policy: Final = f'"{name}";q={quota};w={window_s}'

    async def count(self, client: bytes) -> dict[str, str]:
        """Count one request of a client, and return the headers that its response has.

        Raises: RateLimited, with these headers, until the end of the window in which there were too many.
        Source: contract, section 4; draft-ietf-httpapi-ratelimit-headers.
        """
        state = await self._limit.hit(client)
        headers = {
            "ratelimit-policy": self._policy,
            "ratelimit": f'"{self._name}";r={state.remaining};t={state.reset_s}',
        }
        if state.is_first_refused:
            _log.warning("public_requests_limited", limit=self._name, address=client.hex(), for_s=state.reset_s)
        if not state.is_allowed:
            raise RateLimited(headers={**headers, "retry-after": str(state.reset_s)})
        return headers

    async def aclose(self) -> None:
        """Close the connections, if there are any."""
        await self._limit.aclose()
