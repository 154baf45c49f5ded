"""What a command may reach."""

import asyncio
from dataclasses import dataclass

from soundmark.kit.clock import Clock
from soundmark.kit.entropy import Entropy
from soundmark.kit.postgres import Database
from soundmark.kit.sealing import Sealer


@dataclass(frozen=True, slots=True)
class Context:
    """What a command may reach: the running process's parts, wired once in `app`.

    Who counts events takes one of the `report_turns`.
    """

    db: Database
    clock: Clock
    entropy: Entropy
    sealer: Sealer
    report_turns: asyncio.Semaphore


@dataclass(frozen=True, slots=True)
class WorkContext:
    """What a background job may reach: the parts of a worker, wired once in `worker`. No key: no job opens a secret."""

    db: Database
    clock: Clock
