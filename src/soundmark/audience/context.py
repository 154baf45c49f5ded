"""The contexts of commands and of background jobs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.http.limits.shared_keys import SharedKeys
from soundmark.kit.postgres.database import Database
from soundmark.kit.slots import Turns


class ReportTurns:
    """A limit on reports that are counted at a time. An organisation has one turn at most, so it never has them all.

    With `shared`, it has one in all processes.
    """

    def __init__(self, at_once: int, shared: SharedKeys | None = None) -> None:
        assert at_once > 1, "one organisation could keep the only turn for as long as it likes"
        self._turns: Final = asyncio.Semaphore(at_once)
        self._own: Final = Turns(shared)

    @contextlib.asynccontextmanager
    async def turn(self, organization_id: str) -> AsyncIterator[None]:
        """Wait for the organisation's turn, and hold it until the block ends."""
        async with self._own.take(organization_id), self._turns:
            yield

    async def aclose(self) -> None:
        """Close the connections, if there are any."""
        await self._own.aclose()


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of the running process that a command may use, wired once in `app`.

    A command that counts events takes one of the `report_turns`.
    """

    db: Database
    clock: Clock
    entropy: Entropy
    sealer: Sealer
    report_turns: ReportTurns


@dataclass(frozen=True, slots=True)
class WorkContext:
    """The parts of a worker that a background job may use, wired once in `worker`; no key, as no job opens a secret."""

    db: Database
    clock: Clock
