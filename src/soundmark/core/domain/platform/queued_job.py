"""Jobs of Core's worker that an administrator may have to look at."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

# `failed`: it ended with an error, and does not run again by itself. `retrying`: it has run, and runs again.
JobState = Literal["failed", "retrying"]


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job, without its arguments, which name organisations and people.

    `failed_at` is None unless it failed. `next_attempt_at` is None while it runs, and if it runs as soon as it can.
    """

    id: int
    task: str
    state: JobState
    attempts: int
    failed_at: datetime | None
    next_attempt_at: datetime | None
