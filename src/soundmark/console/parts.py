"""The parts of a page that come from calls of their own: one that fails or is late leaves the others as they are."""

import asyncio
from collections.abc import Awaitable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar

from soundmark_sdk.client import ApiProblem, ClientFailure

T = TypeVar("T")

# As long as people look at a page that does not change before they look elsewhere. Source: docs/adr/0053.
_LATE_S: Final = 4.0


def until_late() -> asyncio.Timeout:
    """Return the time that a part of a page has, as a context; it raises TimeoutError at its end."""
    return asyncio.timeout(_LATE_S)


async def read_part(call: Awaitable[T]) -> T | None:
    """Return what a part of a page shows, or None if its call fails or is late, which the page says in its place.

    Raises: soundmark_sdk.ApiProblem for a session that has ended, which concerns the whole page.
    """
    try:
        async with until_late():
            return await call
    except TimeoutError:
        return None
    except ClientFailure as failure:
        if isinstance(failure, ApiProblem) and failure.status == HTTPStatus.UNAUTHORIZED:
            raise
        return None


async def read_parts(calls: Mapping[str, Awaitable[Any]]) -> dict[str, Any]:
    """Return the parts of a page by their names, read beside one another; None for each whose call fails or is late.

    Raises: as `read_part`.
    """
    values = await asyncio.gather(*map(read_part, calls.values()))
    return dict(zip(calls, values, strict=True))
