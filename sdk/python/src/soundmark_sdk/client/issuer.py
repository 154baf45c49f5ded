"""Issue exactly once over a connection that may break at any moment."""

import re
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias, TypeVar

from soundmark_sdk.client.calls import Call
from soundmark_sdk.client.failures import ApiProblem, ClientFailure
from soundmark_sdk.client.outcomes import is_certainly_undone, is_uncertain
from soundmark_sdk.client.recovery import REMEMBERED_FOR, RecoveryStore, RememberedIssuance
from soundmark_sdk.clock import Clock
from soundmark_sdk.retrying import RetryBudget

# 256 random bits, 43 URL-safe characters; the service accepts 16 to 128 (API v1, "Limits").
_KEY_BYTES: Final = 32
_KEY: Final = re.compile(r"[A-Za-z0-9._~-]{16,128}")

# The service gives these refusals only after it found no receipt for the key, so nothing was issued under it. Other
# refusals, such as a revoked credential, come before that and say nothing about an earlier request.
_NOTHING_ISSUED: Final = frozenset(
    {
        "campaign_archived",
        "campaign_not_found",
        "campaign_not_open",
        "entitlement_required",
        "integration_not_found",
        "integration_revoked",
        "intent_not_canonical",
        "organization_suspended",
        "payload_too_large",
        "quota_exceeded",
        "resource_deletion_in_progress",
        "validation_failed",
    }
)
_NOT_FOUND: Final = "code_issue_not_found"

Step = Literal["issue", "recover"]
T = TypeVar("T")
Fetch: TypeAlias = Callable[[Call], Awaitable[T]]


class Issuer:
    """A sender of issuances that stores each one first, and asks for its answer before sending it again."""

    def __init__(self, store: RecoveryStore, clock: Clock, base_url: str) -> None:
        self._store: Final = store
        self._clock: Final = clock
        self._base_url: Final = base_url
        # The keys in use. A call is working on these issuances, so they are not left over.
        self._keys_in_use: Final[set[str]] = set()

    def list_unsettled(self) -> tuple[RememberedIssuance, ...]:
        """Return the issuances at this service whose answer is missing, oldest first; forget those that are too old."""
        now = self._clock.now()
        kept = []
        for issuance in self._store.list_unsettled():
            if now - issuance.remembered_at >= REMEMBERED_FOR:
                self._store.forget(issuance.idempotency_key)
            elif issuance.base_url == self._base_url and issuance.idempotency_key not in self._keys_in_use:
                kept.append(issuance)
        return tuple(kept)

    def forget(self, issuance: RememberedIssuance) -> None:
        """Delete an issuance from the store."""
        self._store.forget(issuance.idempotency_key)

    async def issue(
        self, body: bytes, *, is_batch: bool, idempotency_key: str | None, fetch: Fetch[T], budget: RetryBudget
    ) -> T:
        """Return the answer of one issuance, which takes place once, however many requests it takes.

        If an earlier issuance with exactly this body has no answer yet, the caller is repeating it, so that issuance is
        finished. The same holds for an earlier issuance under the caller's own key.

        Raises: ClientFailure. ValueError for a malformed key, a key in use, or a key whose earlier issuance has another
            body and no answer yet.
        """
        left_over = self._find_left_over(body, is_batch=is_batch, idempotency_key=idempotency_key)
        if left_over is not None:
            return await self.resume(left_over, fetch=fetch, budget=budget)
        key = choose_key(idempotency_key)
        issuance = RememberedIssuance(key, self._base_url, is_batch, body, self._clock.now())
        with self._using_key(key):
            self._store.remember(issuance)
            return await self._settle(issuance, "issue", fetch, budget)

    async def resume(self, issuance: RememberedIssuance, *, fetch: Fetch[T], budget: RetryBudget) -> T:
        """Return the answer of an issuance that has none yet, which takes place now if it did not before.

        Raises: ClientFailure. ValueError for an issuance that is too old, of another service, or in use.
        """
        self.check(issuance)
        with self._using_key(issuance.idempotency_key):
            return await self._settle(issuance, "recover", fetch, budget)

    def check(self, issuance: RememberedIssuance) -> None:
        """Accept only an issuance that this service can still be asked about.

        Raises: ValueError.
        """
        if self._clock.now() - issuance.remembered_at >= REMEMBERED_FOR:
            raise ValueError("This issuance is too old: a repeat could issue a second time.")
        if issuance.base_url != self._base_url:
            raise ValueError("This issuance was sent to another service.")

    @contextmanager
    def _using_key(self, key: str) -> Iterator[None]:
        if key in self._keys_in_use:
            raise ValueError("An issuance with this idempotency key is in progress.")
        self._keys_in_use.add(key)
        try:
            yield
        finally:
            self._keys_in_use.discard(key)

    def _find_left_over(self, body: bytes, *, is_batch: bool, idempotency_key: str | None) -> RememberedIssuance | None:
        candidates = [one for one in self.list_unsettled() if idempotency_key in {None, one.idempotency_key}]
        same = [one for one in candidates if (one.body, one.is_batch) == (body, is_batch)]
        if candidates and not same and idempotency_key is not None:
            # Sending this request would destroy the only way to learn the result of the other one.
            raise ValueError("Another request with this idempotency key was left without an answer.")
        return next(iter(same), None)

    async def _settle(self, issuance: RememberedIssuance, step: Step, fetch: Fetch[T], budget: RetryBudget) -> T:
        # Whether the service may have received a request whose answer is unknown.
        is_unsettled = step == "recover"
        failure: ClientFailure
        while True:
            try:
                answer = await fetch(make_issuance_call(issuance, step))
            except ClientFailure as raised:
                failure = raised
            except ValueError:
                # The credential could not be sent, so the request was not sent either.
                if not is_unsettled:
                    self.forget(issuance)
                raise
            else:
                self.forget(issuance)
                return answer
            is_unsettled = is_unsettled or is_uncertain(failure)
            never_took_place = _is_not_found(failure, step)
            if is_uncertain(failure):
                step = "recover"
            elif never_took_place:
                step = "issue"
            elif not is_certainly_undone(failure):
                raise self._end(issuance, failure, is_unsettled=is_unsettled and not _is_conclusive(failure, step))
            try:
                # An issuance that never took place is sent at once; after any other failure there is a pause.
                wait_s = budget.spend(failure, at_once=never_took_place)
            except ClientFailure:
                raise self._end(issuance, failure, is_unsettled=is_unsettled) from None
            await self._clock.sleep(wait_s)

    def _end(self, issuance: RememberedIssuance, failure: ClientFailure, *, is_unsettled: bool) -> ClientFailure:
        """Return the failure that ends this attempt. The store keeps the issuance only if its result is unknown."""
        if is_unsettled:
            failure.unsettled = issuance
        else:
            self.forget(issuance)
        return failure


def make_issuance_call(issuance: RememberedIssuance, step: Step) -> Call:
    """Return the request of an issuance, or the one that asks for its answer: the same bytes under the same key."""
    path = ("/v1/codes/batch" if issuance.is_batch else "/v1/codes") + ("/recover" if step == "recover" else "")
    return Call("POST", path, body=issuance.body, headers={"Idempotency-Key": issuance.idempotency_key})


def choose_key(key: str | None) -> str:
    """Return an idempotency key, a new one unless it is given.

    Raises: ValueError for a malformed key.
    """
    if key is None:
        return secrets.token_urlsafe(_KEY_BYTES)
    if _KEY.fullmatch(key) is None:
        raise ValueError("An idempotency key is 16 to 128 of A-Z, a-z, 0-9, '.', '_', '~' and '-'.")
    return key


def _is_not_found(failure: ClientFailure, step: Step) -> bool:
    return step == "recover" and isinstance(failure, ApiProblem) and failure.code == _NOT_FOUND


def _is_conclusive(failure: ClientFailure, step: Step) -> bool:
    return step == "issue" and isinstance(failure, ApiProblem) and failure.code in _NOTHING_ISSUED
