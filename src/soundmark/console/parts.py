"""The parts of a page that come from calls of their own: one that fails leaves the others as they are."""

import asyncio
from collections.abc import Awaitable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from soundmark_sdk.client import ApiProblem, ClientFailure

T = TypeVar("T")


async def read_part(call: Awaitable[T]) -> T | None:
    """Return what a part of a page shows, or None if its call fails, which the page then says in its place.

    Raises: soundmark_sdk.ApiProblem for a session that has ended, which concerns the whole page.
    """
    try:
        return await call
    except ClientFailure as failure:
        if isinstance(failure, ApiProblem) and failure.status == HTTPStatus.UNAUTHORIZED:
            raise
        return None


async def read_parts(calls: Mapping[str, Awaitable[Any]]) -> dict[str, Any]:
    """Return the parts of a page by their names, read beside one another; None for each whose call fails.

    Raises: as `read_part`.
    """
    values = await asyncio.gather(*map(read_part, calls.values()))
    return dict(zip(calls, values, strict=True))
