"""Send calls, for the groups of operations."""

from collections.abc import AsyncIterator
from typing import TypeVar

from soundmark_sdk.client.api_connection import Progress
from soundmark_sdk.client.calls import Call, make_next
from soundmark_sdk.client.dispatcher import Dispatcher, SaveTarget
from soundmark_sdk.client.records import Page, Record
from soundmark_sdk.client.recovery import RememberedIssuance
from soundmark_sdk.keys import KeySet
from soundmark_sdk.runners import AsyncRunner

R = TypeVar("R", bound=Record)


class AsyncSender:
    """The methods of `Dispatcher`, which document themselves there, on a runner."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._runner = AsyncRunner("client", end=dispatcher.close)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._runner.aclose()

    async def choose_organization(self, organization_id: str | None) -> dict[str, str]:
        """See `Dispatcher`."""
        return await self._runner.run(self._dispatcher.choose_organization, organization_id)

    async def choose_project(self, organization_id: str | None, project_id: str | None) -> dict[str, str]:
        """See `Dispatcher`."""
        return await self._runner.run(self._dispatcher.choose_project, organization_id, project_id)

    async def call(self, kind: type[R], call: Call) -> R:
        """See `Dispatcher`."""
        return await self._runner.run(self._dispatcher.call, kind, call)

    async def execute(self, call: Call) -> None:
        """See `Dispatcher`."""
        await self._runner.run(self._dispatcher.execute, call)

    async def get_key_history(self) -> KeySet:
        """See `Dispatcher`."""
        return await self._runner.run(self._dispatcher.get_key_history)

    async def get_page(self, kind: type[R], call: Call) -> Page[R]:
        """See `Dispatcher`."""
        return await self._runner.run(self._dispatcher.get_page, kind, call)

    async def iterate(self, kind: type[R], call: Call) -> AsyncIterator[R]:
        """Yield every record of a list, and fetch one page at a time."""
        page = await self.get_page(kind, call)
        while True:
            for record in page.data:
                yield record
            if page.next_cursor is None:
                return
            page = await self.get_page(kind, make_next(call, page.next_cursor))

    async def save(self, call: Call, into: SaveTarget, on_progress: Progress | None) -> int:
        """See `Dispatcher`. Blocking callers: the file and `on_progress` are used in the thread of the event loop."""
        return await self._runner.run(self._dispatcher.save, call, into, on_progress)

    async def delete_tenant(self, call: Call, subject_id: str, certificate_id: str) -> str:
        """See `Dispatcher`."""
        return await self._runner.run(self._dispatcher.delete_tenant, call, subject_id, certificate_id)

    async def issue(self, kind: type[R], body: bytes, *, is_batch: bool, idempotency_key: str | None) -> R:
        """See `Dispatcher`."""
        return await self._runner.run(
            self._dispatcher.issue, kind, body, is_batch=is_batch, idempotency_key=idempotency_key
        )

    async def resume(self, kind: type[R], issuance: RememberedIssuance) -> R:
        """See `Dispatcher`."""
        return await self._runner.run(self._dispatcher.resume, kind, issuance)

    async def recover(self, kind: type[R], issuance: RememberedIssuance) -> R:
        """See `Dispatcher`."""
        return await self._runner.run(self._dispatcher.recover, kind, issuance)

    async def list_unsettled(self) -> tuple[RememberedIssuance, ...]:
        """See `Dispatcher`."""
        return await self._runner.run(self._dispatcher.list_unsettled)

    async def forget(self, issuance: RememberedIssuance) -> None:
        """See `Dispatcher`."""
        await self._runner.run(self._dispatcher.forget, issuance)
