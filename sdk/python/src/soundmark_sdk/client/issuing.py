"""Issuing exactly once over a connection that may break at any moment."""

import re
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias, TypeVar

from soundmark_sdk.client.exchange import Call
from soundmark_sdk.client.failures import ApiProblem, ClientFailure
from soundmark_sdk.client.recovery import REMEMBERED_FOR, RecoveryStore, RememberedIssuance
from soundmark_sdk.client.retrying import CallBudget, is_nothing_done, is_unsure
from soundmark_sdk.clock import Clock

# 256 random bits, 43 URL-safe characters; the service takes 16 to 128 (API v1, "Limits").
_KEY_BYTES: Final = 32
_KEY: Final = re.compile(r"[A-Za-z0-9._~-]{16,128}")

# Refusals that the service reaches only where it has no receipt for the key: nothing was issued under it. Others, such
# as a credential that was revoked meanwhile, come first and say nothing about what became of an earlier request.
_NOTHING_ISSUED: Final = frozenset(
    {
        "campaign_archived",
        "campaign_not_found",
        "campaign_not_open",
        "entitlement_required",
        "integration_not_found",
        "integration_revoked",
        "intent_not_canonical",
        "payload_too_large",
        "quota_exceeded",
        "validation_failed",
    }
)
_NOT_FOUND: Final = "code_issue_not_found"

Step = Literal["issue", "recover"]
T = TypeVar("T")
Fetch: TypeAlias = Callable[[Call], Awaitable[T]]


class Issuer:
    """Remembers each issuance before it is sent, and asks what became of it before it is sent again."""

    def __init__(self, store: RecoveryStore, clock: Clock, base_url: str) -> None:
        self._store: Final = store
        self._clock: Final = clock
        self._base_url: Final = base_url
        # Those are somebody's, and must not be taken for something that was left over.
        self._under_way: Final[set[str]] = set()

    def unsettled(self) -> tuple[RememberedIssuance, ...]:
        """Return what was left without an answer at this service, oldest first; what is too old is forgotten."""
        now = self._clock.now()
        kept = []
        for issuance in self._store.unsettled():
            if now - issuance.remembered_at >= REMEMBERED_FOR:
                self._store.forget(issuance.idempotency_key)
            elif issuance.base_url == self._base_url and issuance.idempotency_key not in self._under_way:
                kept.append(issuance)
        return tuple(kept)

    def forget(self, issuance: RememberedIssuance) -> None:
        """Remember it no more."""
        self._store.forget(issuance.idempotency_key)

    async def issue(
        self, body: bytes, *, is_batch: bool, idempotency_key: str | None, fetch: Fetch[T], budget: CallBudget
    ) -> T:
        """Return the answer of one issuance, which takes place once however often it has to be asked for.

        Where exactly this body was left without an answer before, that issuance is finished, since the caller is asking
        for it again; with a key of the caller's, where it was left so under this key.

        Raises: ClientFailure. ValueError for a key that is none, is in use at this moment, or was left without an
            answer for another request.
        """
        left_over = self._left_over(body, is_batch=is_batch, idempotency_key=idempotency_key)
        if left_over is not None:
            return await self.resume(left_over, fetch=fetch, budget=budget)
        key = secrets.token_urlsafe(_KEY_BYTES) if idempotency_key is None else _checked(idempotency_key)
        issuance = RememberedIssuance(key, self._base_url, is_batch, body, self._clock.now())
        with self._working_on(issuance):
            self._store.remember(issuance)
            return await self._settle(issuance, "issue", fetch, budget)

    async def resume(self, issuance: RememberedIssuance, *, fetch: Fetch[T], budget: CallBudget) -> T:
        """Return the answer of an issuance that was left without one; it takes place now where it did not before.

        Raises: ClientFailure. ValueError for one that is too old, another service's, or in use at this moment.
        """
        self.check(issuance)
        with self._working_on(issuance):
            return await self._settle(issuance, "recover", fetch, budget)

    def check(self, issuance: RememberedIssuance) -> None:
        """Pass only what may still be asked about, here.

        Raises: ValueError.
        """
        if self._clock.now() - issuance.remembered_at >= REMEMBERED_FOR:
            raise ValueError("This issuance is too old: a repeat could issue a second time.")
        if issuance.base_url != self._base_url:
            raise ValueError("This issuance was sent to another service.")

    @contextmanager
    def _working_on(self, issuance: RememberedIssuance) -> Iterator[None]:
        key = issuance.idempotency_key
        if key in self._under_way:
            raise ValueError("An issuance with this idempotency key is under way already.")
        self._under_way.add(key)
        try:
            yield
        finally:
            self._under_way.discard(key)

    def _left_over(self, body: bytes, *, is_batch: bool, idempotency_key: str | None) -> RememberedIssuance | None:
        left = [one for one in self.unsettled() if idempotency_key in {None, one.idempotency_key}]
        same = [one for one in left if (one.body, one.is_batch) == (body, is_batch)]
        if left and not same and idempotency_key is not None:
            # Nobody could tell any more what became of that one.
            raise ValueError("Another request under this idempotency key was left without an answer.")
        return next(iter(same), None)

    async def _settle(self, issuance: RememberedIssuance, step: Step, fetch: Fetch[T], budget: CallBudget) -> T:
        # Whether a request may have reached the service whose answer we do not know.
        is_unsettled = step == "recover"
        failure: ClientFailure | None = None
        while True:
            budget.begin()
            try:
                answer = await fetch(call_of(issuance, step))
            except ClientFailure as raised:
                failure = raised
            except ValueError:
                # The credential could not be sent, and so nothing was.
                if not is_unsettled:
                    self.forget(issuance)
                raise
            else:
                self.forget(issuance)
                return answer
            is_unsettled = is_unsettled or is_unsure(failure)
            never_took_place = _is_not_found(failure, step)
            if is_unsure(failure):
                step = "recover"
            elif never_took_place:
                step = "issue"
            elif not is_nothing_done(failure):
                raise self._ended(issuance, failure, is_unsettled=is_unsettled and not _is_conclusive(failure, step))
            try:
                # An issuance that never took place is sent at once; whatever else went wrong needs a while.
                wait_s = budget.wait_s(failure, at_once=never_took_place)
            except ClientFailure:
                raise self._ended(issuance, failure, is_unsettled=is_unsettled) from None
            await self._clock.sleep(wait_s)

    def _ended(self, issuance: RememberedIssuance, failure: ClientFailure, *, is_unsettled: bool) -> ClientFailure:
        """The failure with which an issuance ends for now; it stays remembered only where nobody knows more."""
        if is_unsettled:
            failure.unsettled = issuance
        else:
            self.forget(issuance)
        return failure


def _checked(key: str) -> str:
    if _KEY.fullmatch(key) is None:
        raise ValueError("An idempotency key is 16 to 128 of A-Z, a-z, 0-9, '.', '_', '~' and '-'.")
    return key


def call_of(issuance: RememberedIssuance, step: Step) -> Call:
    """Return the request of an issuance, or the one that asks what became of it: the same bytes, the same key."""
    path = ("/v1/codes/batch" if issuance.is_batch else "/v1/codes") + ("/recover" if step == "recover" else "")
    return Call("POST", path, body=issuance.body, headers={"Idempotency-Key": issuance.idempotency_key})


def _is_not_found(failure: ClientFailure, step: Step) -> bool:
    return step == "recover" and isinstance(failure, ApiProblem) and failure.code == _NOT_FOUND


def _is_conclusive(failure: ClientFailure, step: Step) -> bool:
    return step == "issue" and isinstance(failure, ApiProblem) and failure.code in _NOTHING_ISSUED
