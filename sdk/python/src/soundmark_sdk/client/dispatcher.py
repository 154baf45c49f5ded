"""Send calls: fill in the tenant, repeat what is safe to repeat, and turn the answers into records."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeAlias, TypeVar

from soundmark_sdk.client.api_connection import ApiConnection, Progress
from soundmark_sdk.client.calls import Call, make_certificate_call, make_get
from soundmark_sdk.client.failures import AnswerMalformed, ApiProblem, ClientFailure, TenantNotGiven
from soundmark_sdk.client.issuer import Issuer, make_issuance_call
from soundmark_sdk.client.outcomes import is_certainly_undone, is_uncertain
from soundmark_sdk.client.reading import read_document, read_page, read_record
from soundmark_sdk.client.records import Caller, DeletionCertificate, Page, Record
from soundmark_sdk.client.recovery import RememberedIssuance
from soundmark_sdk.client.saving import open_replacement
from soundmark_sdk.clock import Clock
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.keys import KeySet, read_key_history
from soundmark_sdk.retrying import RetryBudget, check_limits, retry

R = TypeVar("R", bound=Record)
T = TypeVar("T")

# A path, or a binary file that is open for writing.
SaveTarget: TypeAlias = str | os.PathLike[str] | BinaryIO

# The refusals of a deletion whose subject is not there, perhaps because it was deleted.
_GONE: Final = frozenset({"organization_not_found", "project_not_found"})


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one call: for each request, for their number, and for all pauses between them together."""

    timeout_s: float
    download_timeout_s: float
    deletion_timeout_s: float
    attempts_max: int
    retry_wait_max_s: float

    def __post_init__(self) -> None:
        check_limits(
            self.timeout_s,
            self.download_timeout_s,
            self.deletion_timeout_s,
            attempts_max=self.attempts_max,
            retry_wait_max_s=self.retry_wait_max_s,
        )

    def make_budget(self) -> RetryBudget:
        """Return the retries of one call."""
        return RetryBudget(self.attempts_max - 1, self.retry_wait_max_s)


@dataclass(frozen=True, slots=True)
class TenantIds:
    """The organisation and the project of calls that name none."""

    organization_id: str | None = None
    project_id: str | None = None


class Dispatcher:
    """A sender of the calls of one client, for one event loop; safe for any number of concurrent calls."""

    def __init__(
        self, connection: ApiConnection, limits: Limits, clock: Clock, issuer: Issuer, tenant: TenantIds
    ) -> None:
        self._connection: Final = connection
        self._limits: Final = limits
        self._clock: Final = clock
        self._issuer: Final = issuer
        self._tenant: Final = tenant
        # The caller that the credential beside it belongs to. Concurrent calls that need it ask once.
        self._known_caller: tuple[str, Caller] | None = None
        self._asking_for_caller: Final = asyncio.Lock()

    async def close(self) -> None:
        """Close the connections and refuse further calls."""
        await self._connection.close()

    async def choose_organization(self, organization_id: str | None) -> dict[str, str]:
        """Return the organisation as a member of a request: the one given, the client's, or that of its API key.

        Raises: TenantNotGiven. ClientFailure when the service cannot be asked about the key.
        """
        chosen = organization_id if organization_id is not None else self._tenant.organization_id
        if chosen is None:
            chosen = (await self._get_caller()).organization_id
        if chosen is None:
            raise TenantNotGiven("organization_id")
        return {"organization_id": chosen}

    async def choose_project(self, organization_id: str | None, project_id: str | None) -> dict[str, str]:
        """Return the organisation and the project as members of a request, chosen like `choose_organization`."""
        organization = await self.choose_organization(organization_id)
        chosen = project_id if project_id is not None else self._tenant.project_id
        if chosen is None:
            chosen = (await self._get_caller()).project_id
        if chosen is None:
            raise TenantNotGiven("project_id")
        return {**organization, "project_id": chosen}

    async def call(self, kind: type[R], call: Call) -> R:
        """Send a call and return its answer as a record."""
        return await self._retry(call, lambda: self._fetch_record(kind, call))

    async def execute(self, call: Call) -> None:
        """Send a call whose answer has no body."""
        await self._retry(call, lambda: self._fetch(call))

    async def get_key_history(self) -> KeySet:
        """Return every key that ever signed."""
        call = Call("GET", "/v1/keys/history", is_repeatable=True, has_credential=False)

        async def act() -> KeySet:
            try:
                return read_key_history(await self._fetch(call))
            except Unverifiable:
                raise AnswerMalformed("The service's verification keys cannot be read.") from None

        return await self._retry(call, act)

    async def get_page(self, kind: type[R], call: Call) -> Page[R]:
        """Return one page of a list."""

        async def act() -> Page[R]:
            return read_page(kind, await self._fetch(call))

        return await self._retry(call, act)

    async def save(self, call: Call, into: SaveTarget, on_progress: Progress | None) -> int:
        """Write an answer into a file, and return its size in bytes.

        A path is replaced only by a complete answer, with a file that only its owner can read. A retry starts again at
        a file object's first position, so one without positions gets no retry after its first byte.

        Raises: OSError for a path that cannot be written.
        """
        if not isinstance(into, (str, os.PathLike)):
            return await self._download(call, into, on_progress)
        with open_replacement(into) as file:
            return await self._download(call, file, on_progress)

    async def _download(self, call: Call, into: BinaryIO, on_progress: Progress | None) -> int:
        start = into.tell() if into.seekable() else None
        taken = 0

        def count_progress(so_far: int, whole: int | None) -> None:
            nonlocal taken
            taken = so_far
            if on_progress is not None:
                on_progress(so_far, whole)

        async def act() -> int:
            self._connection.check_open()
            if start is not None:
                into.seek(start)
                into.truncate()
            timeout_s = self._limits.download_timeout_s
            return await self._connection.download(call, into, on_progress=count_progress, timeout_s=timeout_s)

        return await self._retry(call, act, is_intact=lambda: taken == 0 or start is not None)

    async def delete_tenant(self, call: Call, subject_id: str, certificate_id: str) -> str:
        """Delete a project or an organisation, and return the id of its certificate.

        Repeating the request resumes a deletion. If it is complete, there is nothing left to delete, and the
        certificate says so.
        """

        async def act() -> str:
            try:
                location = await self._connection.fetch_location(call, timeout_s=self._limits.deletion_timeout_s)
            except ApiProblem as problem:
                if problem.code not in _GONE or not await self._is_certified(subject_id, certificate_id):
                    raise
            else:
                if location.rpartition("/")[2] != certificate_id:
                    raise AnswerMalformed("The service's answer does not name the certificate of the deletion.")
            return certificate_id

        return await self._retry(call, act)

    async def _is_certified(self, subject_id: str, certificate_id: str) -> bool:
        try:
            certificate = await self.call(DeletionCertificate, make_certificate_call(certificate_id))
        except ApiProblem as problem:
            if problem.code == "deletion_certificate_not_found":
                return False
            raise
        return certificate.subject.id == subject_id

    async def issue(self, kind: type[R], body: bytes, *, is_batch: bool, idempotency_key: str | None) -> R:
        """Issue exactly once, and return the answer."""
        return await self._issuer.issue(
            body,
            is_batch=is_batch,
            idempotency_key=idempotency_key,
            fetch=lambda call: self._fetch_record(kind, call),
            budget=self._limits.make_budget(),
        )

    async def resume(self, kind: type[R], issuance: RememberedIssuance) -> R:
        """Finish an issuance whose answer is missing."""
        return await self._issuer.resume(
            issuance, fetch=lambda call: self._fetch_record(kind, call), budget=self._limits.make_budget()
        )

    async def recover(self, kind: type[R], issuance: RememberedIssuance) -> R:
        """Return the answer of an issuance that took place, without issuing."""
        self._issuer.check(issuance)
        call = make_issuance_call(issuance, "recover")
        answer = await self._retry(call, lambda: self._fetch_record(kind, call))
        self._issuer.forget(issuance)
        return answer

    async def list_unsettled(self) -> tuple[RememberedIssuance, ...]:
        """Return the issuances whose answer is missing, oldest first."""
        return self._issuer.list_unsettled()

    async def forget(self, issuance: RememberedIssuance) -> None:
        """Delete an issuance from the recovery store."""
        self._issuer.forget(issuance)

    async def _get_caller(self) -> Caller:
        async with self._asking_for_caller:
            credential = self._connection.read_credential()
            if self._known_caller is None or self._known_caller[0] != credential:
                self._known_caller = credential, await self.call(Caller, make_get("/v1/caller"))
            return self._known_caller[1]

    async def _fetch_record(self, kind: type[R], call: Call) -> R:
        return read_record(kind, read_document(await self._fetch(call)))

    async def _fetch(self, call: Call) -> bytes:
        return await self._connection.fetch(call, timeout_s=self._limits.timeout_s)

    async def _retry(
        self, call: Call, act: Callable[[], Awaitable[T]], *, is_intact: Callable[[], bool] = lambda: True
    ) -> T:
        """Call `act` until it succeeds. After a failure that left something behind, `is_intact` is false: no retry."""

        def may_retry(failure: ClientFailure) -> bool:
            # A complete answer that is malformed once will be malformed again.
            is_repeatable = call.is_repeatable and is_uncertain(failure) and not isinstance(failure, AnswerMalformed)
            return is_intact() and (is_repeatable or is_certainly_undone(failure))

        return await retry(
            act, ClientFailure, may_retry=may_retry, budget=self._limits.make_budget(), clock=self._clock
        )
