"""A console in front of a Core whose Audience fails."""

import contextlib
from collections.abc import AsyncIterator

import httpx2

from soundmark.kit.crypto.secret import Secret
from support.audience.faults import core_beside, failing_audience
from support.console.client import ConsoleClient
from support.processes.fake_clock import FakeClock


@contextlib.asynccontextmanager
async def audience_failing(
    client: ConsoleClient, database_url: Secret, clock: FakeClock, fault: str
) -> AsyncIterator[None]:
    """Let the console reach another Core on the same database, whose Audience has a fault."""
    async with failing_audience(fault) as url, core_beside(url, database_url, clock) as api:
        beyond = httpx2.ASGITransport(app=api.app, client=("127.0.0.1", 40001), raise_app_exceptions=False)  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
        with client.core.leading_to(beyond):
            yield
