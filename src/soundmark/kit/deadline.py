"""The deadline of the request in progress, which is when its caller stops waiting."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Final

from soundmark.kit.http.responses.problems import Kind, Problem

_current: Final[ContextVar[asyncio.Timeout | None]] = ContextVar("deadline", default=None)


class DeadlinePassed(Problem):
    """The caller no longer waits for a response, so the work was abandoned."""

    kind, code, title = Kind.UNAVAILABLE, "deadline_passed", "The work was not done before the caller's deadline."


@contextlib.asynccontextmanager
async def enforce_deadline(timeout_s: float) -> AsyncIterator[None]:
    """Cancel the block, and the query that it waits for, after `timeout_s` seconds.

    Raises: DeadlinePassed.
    """
    timeout = asyncio.timeout(timeout_s)
    try:
        async with timeout:
            token = _current.set(timeout)
            try:
                yield
            finally:
                _current.reset(token)
    except TimeoutError:
        if not timeout.expired():
            raise  # Another timeout, inside the block.
        raise DeadlinePassed from None


def find_remaining_s() -> float | None:
    """Return how many seconds the request in progress may still take; None if it has no deadline."""
    timeout = _current.get()
    ends_at_s = None if timeout is None else timeout.when()
    return None if ends_at_s is None else max(0.0, ends_at_s - asyncio.get_running_loop().time())


def outlive_deadline() -> None:
    """Let the request in progress continue after its deadline.

    This is for work that is worth finishing although nobody waits for the response, since a retry finds it done.
    """
    timeout = _current.get()
    if timeout is not None and not timeout.expired():
        timeout.reschedule(None)
