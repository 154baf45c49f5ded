"""The batches in which Core issues Codes."""

import asyncio
from typing import Any

import pytest

from soundmark.kit.groups import Groups


class IssuanceQueue:
    """Counts the requests that have joined a batch to be issued, in whatever thread Core runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.joined = 0
        true_join = Groups.join

        async def join(groups: Groups, key: Any, *args: Any, **kwargs: Any) -> Any:
            if key[0] == "issuing":
                self.joined += 1
            return await true_join(groups, key, *args, **kwargs)

        monkeypatch.setattr(Groups, "join", join)

    async def until_joined(self, count: int) -> None:
        async with asyncio.timeout(30):
            while self.joined < count:  # noqa: ASYNC110 - it may happen in another thread
                await asyncio.sleep(0.005)
