"""Resolve a broadcast token and verify the answer."""

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

import httpx2

from soundmark_sdk.clock import Clock
from soundmark_sdk.failures import KeyUnknown, ReceiverFailure, Unverifiable
from soundmark_sdk.http_exchange import BodyRefused, NoAnswer, Response, ServiceConnection
from soundmark_sdk.keys import KeySet, read_key_set
from soundmark_sdk.members import BROADCAST_TOKEN
from soundmark_sdk.offline_pack import OfflinePack, OfflineResolution
from soundmark_sdk.receiver.key_cache import KeyCache
from soundmark_sdk.receiver.log_check import LogCheck
from soundmark_sdk.receiver.pack_shelf import PackShelf
from soundmark_sdk.records import Resolution
from soundmark_sdk.retrying import RetryBudget, check_limits, retry
from soundmark_sdk.transparency.policy import LogPolicy
from soundmark_sdk.verification import commit_answer, verify_answer

# A payload is at most 64 KiB of base64url, and the intent beside it 16 KiB; a key set of hundreds of keys fits as well.
BODY_BYTES_MAX: Final = 256 * 1024

_HEADERS: Final = {"Accept": "application/json"}
_PROOF_HEADERS: Final = {"Accept": "text/plain"}
# Asks for the signed envelope, without which no answer is accepted (API v1, "Versioning", 3).
_RESOLVE_HEADERS: Final = {**_HEADERS, "X-Svc-Resolution-Proof": "ed25519-v1"}
# Answers of a proxy in front of a service that cannot be reached, or of one that cannot work (details, point A23).
_UNREACHABLE: Final = frozenset({502, 503, 504})
_MAX_AGE: Final = re.compile(r"(?:^|[,\s])max-age=([0-9]{1,9})(?=$|[,\s])", re.IGNORECASE)

T = TypeVar("T")


class Resolver:
    """A resolver of tokens at one service, for one event loop; safe for any number of concurrent calls."""

    def __init__(
        self,
        connection: ServiceConnection,
        clock: Clock,
        *,
        timeout_s: float,
        attempts_max: int,
        retry_wait_max_s: float,
        require_logged: LogPolicy | None = None,
        packs: Iterable[OfflinePack] = (),
    ) -> None:
        """Raises: ValueError for limits under which no request can be made."""
        check_limits(timeout_s, attempts_max=attempts_max, retry_wait_max_s=retry_wait_max_s)
        self._connection: Final = connection
        self._clock: Final = clock
        self._timeout_s: Final = timeout_s
        self._retries_max: Final = attempts_max - 1
        self._retry_wait_max_s: Final = retry_wait_max_s
        self._key_cache: Final = KeyCache(clock)
        self._log_check: Final = None if require_logged is None else LogCheck(require_logged, clock)
        self._shelf: Final = PackShelf(clock, require_logged)
        for pack in packs:
            self._shelf.add(pack)

    async def resolve(self, token: str) -> Resolution | OfflineResolution:
        """Return the verified intent behind a broadcast token; what a pack says if the service cannot be reached.

        Raises: ReceiverFailure. RuntimeError when the connection is closed.
        """
        if BROADCAST_TOKEN.fullmatch(token) is None:
            raise ReceiverFailure("code_unavailable", "That is not a broadcast token.")
        try:
            resolution = await self._resolve_online(token)
        except ReceiverFailure as failure:
            found = self._shelf.find(token) if failure.is_unreachable else None
            if found is None:
                raise
            return found
        self._shelf.note_time(resolution.issued_at)
        return resolution

    async def add_pack(self, pack: OfflinePack) -> None:
        """Keep one more pack."""
        self._shelf.add(pack)

    async def _resolve_online(self, token: str) -> Resolution:
        budget = RetryBudget(self._retries_max, self._retry_wait_max_s)
        body = await self._retry(lambda: self._fetch_answer(token), budget)

        async def fetch_keys() -> tuple[KeySet, float | None]:
            return await self._retry(self._fetch_keys, budget)

        keys = await self._key_cache.get_fresh(fetch_keys)
        try:
            resolution = verify_answer(body, token, keys, self._clock.now())
        except KeyUnknown as unknown:
            newer = await self._key_cache.get_newer(keys, fetch_keys)
            if newer is None:
                raise unknown from None
            resolution = verify_answer(body, token, newer, self._clock.now())
        if self._log_check is not None:
            await self._log_check.require(
                commit_answer(body, token), lambda digest: self._retry(lambda: self._fetch_proof(digest), budget)
            )
        return resolution

    async def report_abuse(self, report: bytes) -> None:
        """Send a report of abuse, once.

        Raises: ReceiverFailure. RuntimeError when the connection is closed.
        """
        headers = {**_HEADERS, "Content-Type": "application/json"}
        try:
            async with self._connection.send(
                "POST", "/v1/abuse-reports", headers, report, timeout_s=self._timeout_s
            ) as response:
                self._check_availability(response)
                if response.status != httpx2.codes.ACCEPTED:
                    raise Unverifiable("The service did not accept the report.")
        except NoAnswer as error:
            raise ReceiverFailure("network", error.explanation) from None

    async def _retry(self, act: Callable[[], Awaitable[T]], budget: RetryBudget) -> T:
        return await retry(
            act, ReceiverFailure, may_retry=lambda failure: failure.retryable, budget=budget, clock=self._clock
        )

    async def _fetch_answer(self, token: str) -> bytes:
        status, body, _ = await self._get(f"/v1/resolve/{token}", _RESOLVE_HEADERS)
        match status:
            case httpx2.codes.OK:
                return body
            case httpx2.codes.NOT_FOUND:
                raise ReceiverFailure("code_unavailable", "There is no such Code, or it was revoked.")
            case httpx2.codes.GONE:
                raise ReceiverFailure("expired", "The Code has expired.")
            case _:
                raise Unverifiable("The service answered with a status that the contract does not allow.")

    async def _fetch_keys(self) -> tuple[KeySet, float | None]:
        status, body, max_age_s = await self._get("/v1/keys", _HEADERS)
        if status != httpx2.codes.OK:
            raise Unverifiable("The service does not publish its keys.")
        return read_key_set(body), max_age_s

    async def _fetch_proof(self, digest: str) -> bytes | None:
        status, body, _ = await self._get(f"/v1/log/proofs/{digest}", _PROOF_HEADERS)
        if status == httpx2.codes.NOT_FOUND:
            return None
        if status != httpx2.codes.OK:
            raise Unverifiable("The service does not publish a transparency log.")
        return body

    async def _get(self, path: str, headers: dict[str, str]) -> tuple[int, bytes, float | None]:
        """Return the status, the body of a 200 (otherwise nothing is read), and the max-age of a response."""
        try:
            async with self._connection.send("GET", path, headers, timeout_s=self._timeout_s) as response:
                self._check_availability(response)
                body = await response.read(BODY_BYTES_MAX) if response.status == httpx2.codes.OK else b""
                return response.status, body, _read_max_age(response)
        except NoAnswer as error:
            raise ReceiverFailure("network", error.explanation, is_unreachable=True) from None
        except BodyRefused as error:
            raise Unverifiable(str(error)) from None

    def _check_availability(self, response: Response) -> None:
        if response.status == httpx2.codes.TOO_MANY_REQUESTS:
            retry_after_s = response.read_retry_after_s(self._clock.now())
            raise ReceiverFailure("rate_limited", "The service asked for a pause.", retry_after_s=retry_after_s)
        if httpx2.codes.is_server_error(response.status):
            retry_after_s = response.read_retry_after_s(self._clock.now())
            explanation = "The service cannot answer at the moment."
            raise ReceiverFailure(
                "temporarily_unavailable",
                explanation,
                retry_after_s=retry_after_s,
                is_unreachable=response.status in _UNREACHABLE,
            )


def _read_max_age(response: Response) -> float | None:
    found = _MAX_AGE.search(response.headers.get("cache-control", ""))
    return float(found[1]) if found else None
