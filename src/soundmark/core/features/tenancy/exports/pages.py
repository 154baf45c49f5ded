"""Writing a long list page by page, each while the next one is read."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final, TypeVar

from soundmark.kit.pacing import Pacer

# A few hundred kilobytes of Codes: two milliseconds in which the event loop reads them, and six in the thread.
PAGE_ROWS: Final = 200

T = TypeVar("T")


async def write_pages(pages: AsyncGenerator[list[T], None], write: Callable[[Sequence[T]], None]) -> None:
    """Write each page in a thread while the next one is read, and rest while the event loop is busy.

    A page that is being written is always waited for, so that nobody writes to a closed file.
    """
    pacer = Pacer()
    async with aclosing(pages):
        rows = await anext(pages, None)
        while rows is not None:
            writing = asyncio.ensure_future(asyncio.to_thread(write, rows))
            try:
                rows = await anext(pages, None)
            finally:
                await asyncio.wait([writing])
            await writing
            await pacer.rest()
