"""Large pieces of work, and tests, one at a time in all processes that share a Redis."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from support.api.core_settings import core_settings
from support.outside.redis_server import running_redis
from support.processes.fake_clock import FakeClock

from soundmark.core.context import RequestContext
from soundmark.core.wiring import make_request_context
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits import shared_server

TESTS_PER_MINUTE = {"webhook_test_limit": 30, "system_test_limit": 10}
ONE_AT_A_TIME = ("exports", "packs", "webhook_tests", "system_tests")


@pytest.fixture
async def contexts(
    database_url: Secret, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[RequestContext, RequestContext]]:
    """Those of two processes."""
    monkeypatch.setattr(shared_server, "_TIMEOUT_S", 10)  # A quarter of a second may pass on a busy machine.
    async with running_redis() as redis, contextlib.AsyncExitStack() as stack:
        settings = core_settings(database_url, rate_limit_url=redis.url)
        one, other = (make_request_context(settings, clock=clock) for _ in range(2))
        for ctx in (one, other):
            for name in (*ONE_AT_A_TIME, *TESTS_PER_MINUTE):
                stack.push_async_callback(getattr(ctx, name).aclose)
        yield one, other


async def test_exports_packs_and_tests_run_once_in_all_processes(
    contexts: tuple[RequestContext, RequestContext],
) -> None:
    for mine, theirs in ((getattr(ctx, name) for ctx in contexts) for name in ONE_AT_A_TIME):
        assert await mine.take("org")
        assert not await theirs.take("org")
        assert await theirs.take("another")
    for name, quota in TESTS_PER_MINUTE.items():
        mine, theirs = (getattr(ctx, name) for ctx in contexts)
        for _ in range(quota // 2):
            assert (await mine.hit(b"org")).is_allowed
            assert (await theirs.hit(b"org")).is_allowed
        assert not (await mine.hit(b"org")).is_allowed
