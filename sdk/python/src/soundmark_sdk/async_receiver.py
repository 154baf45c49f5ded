"""Resolving a broadcast token and verifying the answer, for asyncio."""

import importlib.metadata
from collections.abc import Awaitable, Callable
from typing import Final, Self, TypeVar

import httpx2

from soundmark_sdk.clock import Clock, SystemClock
from soundmark_sdk.failures import KeyUnknown, ReceiverFailure, Unverifiable
from soundmark_sdk.http_exchange import Reply, check_base_url, failure_of_status, get
from soundmark_sdk.key_cache import KeyCache
from soundmark_sdk.keys import KeySet, read_key_set
from soundmark_sdk.records import Resolution
from soundmark_sdk.retrying import RetryBudget
from soundmark_sdk.shapes import BROADCAST_TOKEN
from soundmark_sdk.verification import verify_answer

_HEADERS: Final = {"User-Agent": f"soundmark-sdk/{importlib.metadata.version('soundmark-sdk')}"}
# Asks for the signed envelope, without which no answer is believed (API v1, "Versioning", 3).
_RESOLVE_HEADERS: Final = {**_HEADERS, "X-Svc-Resolution-Proof": "ed25519-v1"}

_T = TypeVar("_T")


class AsyncReceiver:
    """A receiver of one service, for one event loop; safe for any number of concurrent `resolve` calls.

    `timeout_s` bounds each request from connecting to the last byte. `attempts_max` and `retry_wait_max_s` bound the
    retries of one `resolve`. Keys are cached inside, so one receiver should live as long as its program listens.
    A `transport` of one's own brings a proxy or another certificate authority; the environment's proxies are not read.
    """

    def __init__(  # noqa: PLR0913 - each is a setting with a default, given by name
        self,
        base_url: str,
        *,
        timeout_s: float = 5.0,
        attempts_max: int = 3,
        retry_wait_max_s: float = 10.0,
        allow_insecure_http: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises: ValueError for an address that is not https (plain http: loopback only), or a senseless limit."""
        if timeout_s <= 0 or attempts_max < 1 or retry_wait_max_s < 0:
            raise ValueError("timeout_s must be above 0, attempts_max at least 1 and retry_wait_max_s at least 0.")
        self._base_url = check_base_url(base_url, allow_insecure_http=allow_insecure_http)
        self._timeout_s = timeout_s
        self._attempts_max = attempts_max
        self._retry_wait_max_s = retry_wait_max_s
        self._clock: Clock = SystemClock() if clock is None else clock
        self._transport = httpx2.AsyncHTTPTransport() if transport is None else transport
        self._key_cache = KeyCache(self._clock)
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. A closed receiver resolves nothing any more."""
        self._closed = True
        await self._transport.aclose()

    async def resolve(self, token: str) -> Resolution:
        """Return the verified intent behind a broadcast token (`Frame.token`).

        Repeating it is safe: resolving changes nothing at the service.

        Raises: ReceiverFailure, and nothing else, when there is no verified intent. What cannot be a token is
            `code_unavailable` without asking the service. RuntimeError after `aclose`.
        Source: API v1, "Receiver-facing"; wire contract, section 4.
        """
        if BROADCAST_TOKEN.fullmatch(token) is None:
            raise ReceiverFailure("code_unavailable", "That is no broadcast token.")
        budget = RetryBudget(self._attempts_max - 1, self._retry_wait_max_s)
        body = await self._attempt(budget, lambda: self._fetch_answer(token))

        async def fetch_keys() -> tuple[KeySet, float | None]:
            return await self._attempt(budget, self._fetch_keys)

        keys = await self._key_cache.current(fetch_keys)
        try:
            return verify_answer(body, token, keys, self._clock.now())
        except KeyUnknown as unknown:
            newer = await self._key_cache.newer_than(keys, fetch_keys)
            if newer is None:
                raise unknown from None
        return verify_answer(body, token, newer, self._clock.now())

    async def _attempt(self, budget: RetryBudget, act: Callable[[], Awaitable[_T]]) -> _T:
        while True:
            try:
                return await act()
            except ReceiverFailure as failure:
                wait_s = budget.spend(failure)
            await self._clock.sleep(wait_s)

    async def _fetch_answer(self, token: str) -> bytes:
        reply = await self._get(f"/v1/resolve/{token}", _RESOLVE_HEADERS)
        match reply.status:
            case httpx2.codes.OK:
                return reply.body
            case httpx2.codes.NOT_FOUND:
                raise ReceiverFailure("code_unavailable", "There is no such Code, or it was revoked.")
            case httpx2.codes.GONE:
                raise ReceiverFailure("expired", "The Code has expired.")
            case _:
                raise Unverifiable("The service answered in a way that the contract does not know.")

    async def _fetch_keys(self) -> tuple[KeySet, float | None]:
        reply = await self._get("/v1/keys", _HEADERS)
        if reply.status != httpx2.codes.OK:
            raise Unverifiable("The service does not publish its keys.")
        return read_key_set(reply.body), reply.max_age_s

    async def _get(self, path: str, headers: dict[str, str]) -> Reply:
        # The transport would connect anew, and nobody would close that connection.
        if self._closed:
            raise RuntimeError("This receiver is closed.")
        reply = await get(self._transport, self._base_url, path, headers, self._timeout_s)
        failure = failure_of_status(reply, self._clock.now())
        if failure is not None:
            raise failure
        return reply
