"""The requests that wait to be issued something."""

import asyncio
from typing import Any

import pytest

from soundmark.kit.postgres.batching import Batcher


class IssuanceQueue:
    """Counts the requests that have entered the queue of an organisation, in whatever thread Core runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered_count = 0
        submit = Batcher.submit

        def count_and_submit(batcher: Any, item: Any, *, queue: str = "", size: int = 1) -> Any:
            if queue.startswith("org_"):
                self.entered_count += 1
            return submit(batcher, item, queue=queue, size=size)

        monkeypatch.setattr(Batcher, "submit", count_and_submit)

    async def until_entered(self, count: int) -> None:
        async with asyncio.timeout(30):
            while self.entered_count < count:  # noqa: ASYNC110 - it may happen in another thread
                await asyncio.sleep(0.005)
