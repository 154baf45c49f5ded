"""A client of the small application behind the HTTP edge."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from support.api.edge_app import BASE_URL, create_app


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    """The client under test."""
    transport = httpx2.ASGITransport(create_app(), raise_app_exceptions=False)  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        yield client
