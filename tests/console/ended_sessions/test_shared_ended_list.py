"""Ended sessions that processes share by a server, which may be away, hang, restart or lose its content."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog
from support.outside.redis_server import RedisServer, running_redis
from support.processes.fake_clock import FakeClock

from soundmark.console.ended_sessions import ended_list, ended_sessions, shared_ended_list
from soundmark.console.ended_sessions.ended_list import EVERY, EndedSession
from soundmark.console.ended_sessions.ended_sessions import EndedSessions, make_ended_sessions
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits import shared_server

KEY = "soundmark:console:ended-sessions"


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RedisServer]:
    """A server that the code under test calls."""
    monkeypatch.setattr(shared_server, "_TIMEOUT_S", 10)  # A quarter of a second may pass on a busy machine.
    async with running_redis() as running:
        yield running


@contextlib.asynccontextmanager
async def process(server: RedisServer, clock: FakeClock) -> AsyncIterator[EndedSessions]:
    """What one process of the console knows."""
    made = make_ended_sessions(None, Secret(server.url), clock)
    try:
        yield made
    finally:
        await made.aclose()


def session(clock: FakeClock, number: int, *, lasts_s: float = 3600.0) -> EndedSession:
    return EndedSession(number.to_bytes(16, "big"), round(clock.unix_s()) + lasts_s)


@pytest.fixture
def clock() -> FakeClock:
    """A clock that the test can move."""
    clock = FakeClock()
    clock.freeze()
    return clock


async def test_a_session_that_ended_while_the_server_was_away_is_refused_where_it_ended_and_everywhere_afterwards(
    server: RedisServer, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended_sessions, "_AGAIN_S", 0.01)
    before, during = session(clock, 1), session(clock, 2)
    async with process(server, clock) as here, process(server, clock) as there:
        await here.add(before)
        assert await there.has(before)
        server.stop()
        with structlog.testing.capture_logs() as events:
            await here.add(during)
            assert await here.has(during)
            assert await there.has(before), "it was refused there before"
            assert not await there.has(during), "nobody could tell this process"
        assert {event["event"] for event in events} == {"ended_sessions_unavailable"}

        await server.start()
        clock.advance(seconds=1)
        assert here._completing is not None
        await here._completing  # Although nobody asks this process for anything.
        assert await there.has(during)


async def test_a_server_that_hangs_delays_one_request_in_a_second(
    server: RedisServer, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with process(server, clock) as here:
        await here.add(session(clock, 1))
        monkeypatch.setattr(shared_server, "_TIMEOUT_S", 0.05)
        with server.hanging(), structlog.testing.capture_logs() as events:
            assert await here.has(session(clock, 1)), "what is known here needs no server"
            for _ in range(20):
                assert not await here.has(session(clock, 2))
        assert [event["event"] for event in events] == ["ended_sessions_unavailable"]


async def test_a_server_that_lost_its_content_gets_it_back(server: RedisServer, clock: FakeClock) -> None:
    """It restarted without persistence, and no process noticed."""
    ended = [session(clock, number, lasts_s=number) for number in (1000, 3000, 2000)]
    async with process(server, clock) as here, process(server, clock) as there, server.client() as client:
        for one in ended:
            await here.add(one)
        server.stop()
        await server.start()
        assert not await there.has(ended[0])
        assert not await here.has(session(clock, 9)), "any question to the process that knows them is enough"
        assert [await there.has(one) for one in ended] == [True, True, True]
        assert await client.zcard(KEY) == 3
        commands = await client.info("commandstats")
        await here.has(session(clock, 9))
        assert (await client.info("commandstats"))["cmdstat_zadd"] == commands["cmdstat_zadd"], "once"


async def test_a_process_that_starts_puts_what_its_file_knows_there(
    server: RedisServer, clock: FakeClock, tmp_path: Path
) -> None:
    """The process before it may have died before the server was back."""
    alone = make_ended_sessions(tmp_path, None, clock)
    await alone.add(session(clock, 1))
    await alone.aclose()
    both = make_ended_sessions(tmp_path, Secret(server.url), clock)
    async with process(server, clock) as there:
        assert not await both.has(session(clock, 2))
        assert await there.has(session(clock, 1))
    await both.aclose()


async def test_the_set_at_the_server_forgets_what_ended_anyway_and_ends_by_itself(
    server: RedisServer, clock: FakeClock
) -> None:
    async with process(server, clock) as here, server.client() as client:
        await here.add(session(clock, 1, lasts_s=10))
        clock.advance(seconds=60 + 9)
        await here.add(session(clock, 2))
        assert await client.zcard(KEY) == 2, "the clock of another machine may be a minute late"
        clock.advance(seconds=2)
        await here.add(session(clock, 3))
        assert await client.zcard(KEY) == 2
        assert 12 * 3600 < await client.ttl(KEY) <= 13 * 3600


async def test_a_full_set_at_the_server_ends_the_oldest_sessions_and_forgets_none(
    server: RedisServer, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (ended_list, shared_ended_list):
        monkeypatch.setattr(module, "REPLACED_COUNT", 2)
    monkeypatch.setattr(shared_ended_list, "SESSIONS_MAX", 10)
    numbers = range(1, 31)
    async with process(server, clock) as here, process(server, clock) as there, server.client() as client:
        for number in numbers:
            await here.add(session(clock, number, lasts_s=number * 100))
            assert await client.zcard(KEY) <= 11
        assert all([await there.has(session(clock, number, lasts_s=number * 100)) for number in numbers])
        until_s = await client.zscore(KEY, EVERY.hex())
        assert await there.has(EndedSession(b"n" * 16, until_s)), "nobody ended it, but it is as old"
        assert not await there.has(EndedSession(b"n" * 16, until_s + 1))


async def test_a_server_without_memory_counts_as_away(server: RedisServer, clock: FakeClock) -> None:
    """Under `maxmemory` and `noeviction` it refuses to store anything, and forgets nothing."""
    async with process(server, clock) as here, server.client() as client:
        await client.config_set("maxmemory", "1")
        with structlog.testing.capture_logs() as events:
            await here.add(session(clock, 1))
        assert await here.has(session(clock, 1))
        assert [event["event"] for event in events] == ["ended_sessions_unavailable"]


async def test_nothing_at_the_server_is_a_cookie_or_a_token(server: RedisServer, clock: FakeClock) -> None:
    async with process(server, clock) as here, server.client() as client:
        await here.add(session(clock, 7))
        assert await client.zrange(KEY, 0, -1) == [b"0" * 31 + b"7"]
