"""How calls reach the service: repeated where that is safe; for asyncio and, through a thread, for the rest."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar

from soundmark_sdk.client.exchange import Call, Progress, Target, download, fetch, get
from soundmark_sdk.client.failures import AnswerMalformed, ClientFailure, TenantNotGiven
from soundmark_sdk.client.issuing import Issuer, call_of
from soundmark_sdk.client.reading import read_document, read_page, read_record
from soundmark_sdk.client.records import Caller, Page, Record
from soundmark_sdk.client.recovery import RememberedIssuance
from soundmark_sdk.client.retrying import CallBudget, is_nothing_done, is_unsure
from soundmark_sdk.clock import Clock
from soundmark_sdk.loop_thread import LoopThread

R = TypeVar("R", bound=Record)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a client tries."""

    timeout_s: float
    download_timeout_s: float
    attempts_max: int
    retry_wait_max_s: float

    def __post_init__(self) -> None:
        if min(self.timeout_s, self.download_timeout_s) <= 0 or self.attempts_max < 1 or self.retry_wait_max_s < 0:
            raise ValueError("Timeouts must be above 0, attempts_max at least 1 and retry_wait_max_s at least 0.")

    def budget(self) -> CallBudget:
        """Return what one call of the caller may spend."""
        return CallBudget(self.attempts_max, self.retry_wait_max_s)


@dataclass(frozen=True, slots=True)
class TenantIds:
    """The organisation and the project that calls are about unless they say otherwise."""

    organization_id: str | None = None
    project_id: str | None = None


class AsyncSender:
    """Sends calls on one event loop."""

    def __init__(self, target: Target, limits: Limits, clock: Clock, issuer: Issuer, tenant: TenantIds) -> None:
        self._target = target
        self._tenant = tenant
        # Who the credential beside it stands for; calls that need it at the same time ask once.
        self._known_caller: tuple[str, Caller] | None = None
        self._asking_for_caller = asyncio.Lock()
        self._limits = limits
        self._clock = clock
        self._issuer = issuer
        self._closed = False

    async def aclose(self) -> None:
        """Close the connections; nothing is sent any more."""
        self._closed = True
        await self._target.transport.aclose()

    async def in_organization(self, given: str | None) -> dict[str, str]:
        """Return the organisation as a member of a request: the one given, the client's, or that of its server key.

        Raises: TenantNotGiven. ClientFailure where the service cannot be asked about the key.
        """
        chosen = given if given is not None else self._tenant.organization_id
        if chosen is None:
            chosen = (await self._caller()).organization_id
        if chosen is None:
            raise TenantNotGiven("organization_id")
        return {"organization_id": chosen}

    async def in_project(self, organization_id: str | None, project_id: str | None) -> dict[str, str]:
        """Return the organisation and the project as members of a request, as `in_organization` finds them."""
        organization = await self.in_organization(organization_id)
        chosen = project_id if project_id is not None else self._tenant.project_id
        if chosen is None:
            chosen = (await self._caller()).project_id
        if chosen is None:
            raise TenantNotGiven("project_id")
        return {**organization, "project_id": chosen}

    async def call(self, kind: type[R], call: Call) -> R:
        """Return what is answered, as a record."""
        return await self._attempt(call, lambda: self._fetch_record(kind, call))

    async def order(self, call: Call) -> None:
        """Have something done that is answered with nothing."""
        await self._attempt(call, lambda: self._fetch(call))

    async def page(self, kind: type[R], call: Call) -> Page[R]:
        """Return one page of a list."""

        async def act() -> Page[R]:
            return read_page(kind, await self._fetch(call))

        return await self._attempt(call, act)

    async def each(self, kind: type[R], call: Call) -> AsyncIterator[R]:
        """Yield every record of a list, a page at a time."""
        page = await self.page(kind, call)
        while True:
            for record in page.data:
                yield record
            if page.next_cursor is None:
                return
            page = await self.page(kind, next_call(call, page.next_cursor))

    async def download(self, call: Call, into: BinaryIO, on_progress: Progress | None) -> int:
        """Write an answer into a file; after half of it again from where the file stood, unless that cannot go back."""
        begun_at = into.tell() if into.seekable() else None
        taken = 0

        def progress(so_far: int, whole: int | None) -> None:
            nonlocal taken
            taken = so_far
            if on_progress is not None:
                on_progress(so_far, whole)

        async def act() -> int:
            self._check_open()
            if begun_at is not None:
                into.seek(begun_at)
                into.truncate()
            timeout_s = self._limits.download_timeout_s
            now = self._clock.now
            return await download(self._target, call, into, on_progress=progress, timeout_s=timeout_s, now=now)

        return await self._attempt(call, act, may_repeat=lambda: taken == 0 or begun_at is not None)

    async def issue(self, kind: type[R], body: bytes, *, is_batch: bool, idempotency_key: str | None) -> R:
        """Issue exactly once, and return what was issued."""
        return await self._issuer.issue(
            body,
            is_batch=is_batch,
            idempotency_key=idempotency_key,
            fetch=lambda call: self._fetch_record(kind, call),
            budget=self._limits.budget(),
        )

    async def resume(self, kind: type[R], issuance: RememberedIssuance) -> R:
        """Finish an issuance that was left without an answer."""
        budget = self._limits.budget()
        return await self._issuer.resume(issuance, fetch=lambda call: self._fetch_record(kind, call), budget=budget)

    async def recover(self, kind: type[R], issuance: RememberedIssuance) -> R:
        """Return what an issuance was answered, without issuing."""
        self._issuer.check(issuance)
        call = call_of(issuance, "recover")
        answer = await self._attempt(call, lambda: self._fetch_record(kind, call))
        self._issuer.forget(issuance)
        return answer

    async def unsettled(self) -> tuple[RememberedIssuance, ...]:
        """Return the issuances that were left without an answer, oldest first."""
        return self._issuer.unsettled()

    async def forget(self, issuance: RememberedIssuance) -> None:
        """Remember an issuance no more."""
        self._issuer.forget(issuance)

    async def _caller(self) -> Caller:
        """Return who the credential of this moment stands for, asked once for each credential."""
        async with self._asking_for_caller:
            secret = self._target.secret()
            if self._known_caller is None or self._known_caller[0] != secret:
                self._known_caller = secret, await self.call(Caller, get("/v1/caller"))
            return self._known_caller[1]

    async def _fetch_record(self, kind: type[R], call: Call) -> R:
        return read_record(kind, read_document(await self._fetch(call)))

    async def _fetch(self, call: Call) -> bytes:
        self._check_open()
        return await fetch(self._target, call, timeout_s=self._limits.timeout_s, now=self._clock.now)

    async def _attempt(
        self, call: Call, act: Callable[[], Awaitable[T]], *, may_repeat: Callable[[], bool] = lambda: True
    ) -> T:
        budget = self._limits.budget()
        while True:
            budget.begin()
            try:
                return await act()
            except ClientFailure as failure:
                # What was answered whole and malformed once will be so again.
                repeats = call.is_repeatable and is_unsure(failure) and not isinstance(failure, AnswerMalformed)
                if not may_repeat() or not (repeats or is_nothing_done(failure)):
                    raise
                wait_s = budget.wait_s(failure)
            await self._clock.sleep(wait_s)

    def _check_open(self) -> None:
        # The transport would connect anew, and nobody would close that connection.
        if self._closed:
            raise RuntimeError("This client is closed.")


class BlockingSender:
    """The same for blocking code, on a loop in a thread of its own; any thread may call."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender
        self._loop = LoopThread("client", end=sender.aclose)

    def close(self) -> None:
        """Close the connections and end the thread; closing again does nothing."""
        self._loop.close()

    def in_organization(self, given: str | None) -> dict[str, str]:
        """See `AsyncSender`, here and below."""
        return self._loop.run(lambda: self._sender.in_organization(given))

    def in_project(self, organization_id: str | None, project_id: str | None) -> dict[str, str]:
        """See `AsyncSender`."""
        return self._loop.run(lambda: self._sender.in_project(organization_id, project_id))

    def call(self, kind: type[R], call: Call) -> R:
        """See `AsyncSender`."""
        return self._loop.run(lambda: self._sender.call(kind, call))

    def order(self, call: Call) -> None:
        """See `AsyncSender`."""
        self._loop.run(lambda: self._sender.order(call))

    def page(self, kind: type[R], call: Call) -> Page[R]:
        """See `AsyncSender`."""
        return self._loop.run(lambda: self._sender.page(kind, call))

    def each(self, kind: type[R], call: Call) -> Iterator[R]:
        """See `AsyncSender`."""
        page = self.page(kind, call)
        while True:
            yield from page.data
            if page.next_cursor is None:
                return
            page = self.page(kind, next_call(call, page.next_cursor))

    def download(self, call: Call, into: BinaryIO, on_progress: Progress | None) -> int:
        """See `AsyncSender`. The file is written, and `on_progress` called, in the loop's thread."""
        return self._loop.run(lambda: self._sender.download(call, into, on_progress))

    def issue(self, kind: type[R], body: bytes, *, is_batch: bool, idempotency_key: str | None) -> R:
        """See `AsyncSender`."""
        return self._loop.run(
            lambda: self._sender.issue(kind, body, is_batch=is_batch, idempotency_key=idempotency_key)
        )

    def resume(self, kind: type[R], issuance: RememberedIssuance) -> R:
        """See `AsyncSender`."""
        return self._loop.run(lambda: self._sender.resume(kind, issuance))

    def recover(self, kind: type[R], issuance: RememberedIssuance) -> R:
        """See `AsyncSender`."""
        return self._loop.run(lambda: self._sender.recover(kind, issuance))

    def unsettled(self) -> tuple[RememberedIssuance, ...]:
        """See `AsyncSender`."""
        return self._loop.run(self._sender.unsettled)

    def forget(self, issuance: RememberedIssuance) -> None:
        """See `AsyncSender`."""
        self._loop.run(lambda: self._sender.forget(issuance))


def next_call(call: Call, cursor: str) -> Call:
    """Return the request for the page that a cursor leads to."""
    query: dict[str, Any] = {**call.query, "cursor": cursor}
    return Call(call.method, call.path, query, is_repeatable=True)
