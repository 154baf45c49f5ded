"""Reading the database again and again for the metrics of a process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from soundmark.kit.http.responses.problems import DatabaseUnavailable

_log: Final = structlog.get_logger()


async def keep_reading(read: Callable[[], Awaitable[object]], *, every_s: float, failed: str) -> None:
    """Read until cancelled. If reading fails, the last numbers stay until it succeeds.

    A failure is logged as `failed` once, until there is another or none.
    """
    known_trouble: type[Exception] | None = None
    while True:
        try:
            await read()
            known_trouble = None
        except DatabaseUnavailable:
            pass  # Readiness and every request report it.
        except Exception as error:  # noqa: BLE001 - if this loop ended, the numbers would stay as they are for ever
            if type(error) is not known_trouble:
                known_trouble = type(error)
                _log.error(failed, error=known_trouble.__name__, exc_info=error)
        await asyncio.sleep(every_s)
