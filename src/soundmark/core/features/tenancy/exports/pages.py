"""Reading a long list page by page, and writing each page while the next one is read."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from soundmark.kit.pacing import Pacer
from soundmark.kit.text.paging import BEGINNING, Position

# A few hundred kilobytes of Codes: two milliseconds in which the event loop reads them, and six in the thread.
PAGE_ROWS: Final = 200

T = TypeVar("T")
ReadPage = Callable[[Position], Awaitable[list[T]]]


async def write_pages(
    read_page: ReadPage[T], position: Callable[[T], Position], write: Callable[[Sequence[T]], None]
) -> None:
    """Write each page in a thread while the next one is read, and rest while the event loop is busy.

    A page that is being written is always waited for, so that nobody writes to a closed file.
    """
    pacer, rows = Pacer(), await read_page(BEGINNING)
    while rows:
        is_last = len(rows) < PAGE_ROWS
        writing = asyncio.ensure_future(asyncio.to_thread(write, rows))
        try:
            rows = [] if is_last else await read_page(position(rows[-1]))
        finally:
            await asyncio.wait([writing])
        await writing
        await pacer.rest()
