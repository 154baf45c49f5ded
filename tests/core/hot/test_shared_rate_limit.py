"""The rate limit that several processes share: with a real redis-server, and with one that fails."""

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import pytest
import structlog
from redis.asyncio import Redis
from support.api.core_settings import core_settings
from support.outside.redis_server import RedisServer, running_redis
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits import shared_server
from soundmark.kit.http.limits.local import LimitState, LocalRateLimit
from soundmark.kit.http.limits.shared import SharedRateLimit
from soundmark.kit.http.requests.client_address import AddressDigest

QUOTA, WINDOW_S = 3, 10
SUBJECT, OTHER = b"\x01" * 16, b"\x02" * 16
ADDRESS = "127.0.0.1"
HOUR_S = 3600.0 * 494_000  # A full hour.
UNKNOWN = "brd_" + "u" * 16
HANGING_S_MAX = 10  # The limit waits 0.25 s, so fifty in sequence take 12.5 s; the rest is for a busy machine.


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RedisServer]:
    """A server that the code under test calls."""
    # A quarter of a second may pass on a busy machine; tests that are not about waiting wait longer.
    monkeypatch.setattr(shared_server, "_TIMEOUT_S", 10)
    async with running_redis() as found:
        yield found


@contextlib.asynccontextmanager
async def limiter(url: str, clock: FakeClock | None = None) -> AsyncIterator[SharedRateLimit]:
    clock = clock or FakeClock()
    alone = LocalRateLimit(QUOTA, WINDOW_S, clock)
    limit = SharedRateLimit(Secret(url), QUOTA, WINDOW_S, key_prefix=b"tests:", alone=alone, clock=clock)
    try:
        yield limit
    finally:
        await limit.aclose()


async def remaining(*limits: SharedRateLimit) -> list[int]:
    return [(await limit.hit(SUBJECT)).remaining for limit in limits]


async def test_two_processes_count_together(server: RedisServer) -> None:
    async with limiter(server.url) as one, limiter(server.url) as other:
        verdicts = [await limit.hit(SUBJECT) for limit in (one, other, one, other, one)]
        assert [verdict.is_allowed for verdict in verdicts] == [True, True, True, False, False]
        assert [verdict.remaining for verdict in verdicts] == [2, 1, 0, 0, 0]
        assert all(1 <= verdict.reset_s <= WINDOW_S for verdict in verdicts)
        assert await other.hit(OTHER) == LimitState(is_allowed=True, remaining=2, reset_s=WINDOW_S)


async def test_many_at_once_are_each_counted_once(server: RedisServer) -> None:
    async with limiter(server.url) as one, limiter(server.url) as other:
        verdicts = await asyncio.gather(*(limit.hit(SUBJECT) for limit in [one, other] * 10))
        assert sum(verdict.is_allowed for verdict in verdicts) == QUOTA


async def test_a_window_ends_and_the_next_request_opens_a_new_one(server: RedisServer) -> None:
    async with limiter(server.url) as limit, server.client() as client:
        assert await remaining(limit, limit, limit, limit) == [2, 1, 0, 0]
        (key,) = await client.keys()
        assert 0 < await client.pttl(key) <= WINDOW_S * 1000
        # As Redis does when the window is over.
        await client.pexpire(key, 0)
        assert await limit.hit(SUBJECT) == LimitState(is_allowed=True, remaining=2, reset_s=WINDOW_S)


async def test_a_request_does_not_prolong_its_window(server: RedisServer) -> None:
    """Otherwise a steady receiver would never be admitted again."""
    async with limiter(server.url) as limit, server.client() as client:
        await limit.hit(SUBJECT)
        (key,) = await client.keys()
        await client.pexpire(key, 1500)
        assert (await limit.hit(SUBJECT)).reset_s <= 2
        assert await client.pttl(key) <= 1500


async def test_a_count_that_lost_its_end_still_ends(server: RedisServer) -> None:
    """A count without an expiry, however it came about, must not shut a receiver out for ever."""
    async with limiter(server.url) as limit, server.client() as client:
        await limit.hit(SUBJECT)
        (key,) = await client.keys()
        await client.persist(key)
        await limit.hit(SUBJECT)
        assert 0 < await client.pttl(key) <= WINDOW_S * 1000


async def test_when_the_server_dies_this_process_counts_alone_and_joins_again(server: RedisServer) -> None:
    clock = FakeClock()
    async with limiter(server.url, clock) as one, limiter(server.url, clock) as other:
        assert await remaining(one, other) == [2, 1]
        server.stop()
        # Neither one stops resolution, and neither lifts the limit.
        assert await remaining(one, one, one, one, other) == [2, 1, 0, 0, 2]
        assert not (await one.hit(SUBJECT)).is_allowed
        await server.start()
        clock.advance(seconds=1)
        assert await remaining(one, other, one, other) == [2, 1, 0, 0]


async def test_a_server_that_restarts_is_found_again_by_the_next_request(server: RedisServer) -> None:
    """The old connection is broken; that must not cost a request its place in the shared count."""
    async with limiter(server.url) as limit, server.client() as client:
        await limit.hit(SUBJECT)
        server.stop()
        await server.start()
        assert await remaining(limit, limit) == [2, 1]
        (key,) = await client.keys()
        assert await client.get(key) == b"2"


async def test_a_late_answer_is_not_taken_for_the_next_one(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    async with limiter(server.url, clock) as limit:
        assert await remaining(limit, limit) == [2, 1]
        with server.hanging(), monkeypatch.context() as hurry:
            hurry.setattr(shared_server, "_TIMEOUT_S", 0.01)
            assert await limit.hit(OTHER) == LimitState(is_allowed=True, remaining=2, reset_s=WINDOW_S)
        clock.advance(seconds=1)
        verdict = await limit.hit(SUBJECT)
        assert (verdict.is_allowed, verdict.remaining) == (True, 0)
        assert not (await limit.hit(SUBJECT)).is_allowed


class StoppedClock(FakeClock):
    """A clock that moves only on command, however slow the machine is."""

    def monotonic_s(self) -> float:
        return self._monotonic_shift_s


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """Run a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"


async def test_a_server_that_hangs_delays_by_its_timeout_at_most() -> None:
    with silent_server() as url:
        async with limiter(url) as limit:
            async with asyncio.timeout(HANGING_S_MAX):
                verdict = await limit.hit(SUBJECT)
            assert verdict == LimitState(is_allowed=True, remaining=2, reset_s=WINDOW_S)


async def test_a_server_that_hangs_delays_many_at_once_no_longer_than_one() -> None:
    with silent_server() as url:
        async with limiter(url) as limit, asyncio.timeout(HANGING_S_MAX):
            verdicts = await asyncio.gather(*(limit.hit(SUBJECT) for _ in range(50)))
        assert sum(verdict.is_allowed for verdict in verdicts) == QUOTA


async def test_a_server_that_hangs_is_asked_once_a_second_by_one_request_and_named_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise every resolution would wait for it, and log it, for as long as it hangs."""
    clock = StoppedClock()
    requests_count = 0
    count_together = SharedRateLimit._count_together

    async def counted(limit: SharedRateLimit, client: Redis, key: bytes) -> LimitState:
        nonlocal requests_count
        requests_count += 1
        return await count_together(limit, client, key)

    monkeypatch.setattr(SharedRateLimit, "_count_together", counted)
    with silent_server() as url, structlog.testing.capture_logs() as logged:
        async with limiter(url, clock) as limit:
            await asyncio.gather(*(limit.hit(OTHER) for _ in range(5)))
            assert (requests_count, len(logged)) == (5, 1), "nobody could know; one tells"
            for seconds in (0, 0.5):
                clock.advance(seconds=seconds)
                verdicts = await asyncio.gather(*(limit.hit(SUBJECT) for _ in range(2)))
            assert (requests_count, len(logged)) == (5, 1)
            assert [verdict.is_allowed for verdict in verdicts] == [True, False], "the limit is not lifted meanwhile"
            for round_number in (1, 2):
                clock.advance(seconds=1)
                await asyncio.gather(*(limit.hit(OTHER) for _ in range(5)))
                assert (requests_count, len(logged)) == (5 + round_number, 1 + round_number)
    assert {entry["event"] for entry in logged} == {"shared_rate_limit_unavailable"}


async def test_a_server_that_refuses_a_command_counts_as_unavailable(server: RedisServer) -> None:
    async with server.client() as client:
        await client.config_set("requirepass", "a-password")
        async with limiter(server.url) as stranger:
            assert await remaining(stranger, stranger, stranger, stranger) == [2, 1, 0, 0]


async def test_a_server_that_answers_something_else_counts_as_unavailable() -> None:
    """Such as another kind of server at that address: no request may fail for it."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asked := await reader.read(4096):
            writer.write(b":many\r\n" * asked.count(b"*"))
        writer.close()

    other = await asyncio.start_server(speak, ADDRESS, 0)
    async with other, limiter(f"redis://{ADDRESS}:{other.sockets[0].getsockname()[1]}") as limit:
        assert await remaining(limit, limit) == [2, 1]
        assert (await limit.look(SUBJECT)).remaining == 1


async def test_addresses_never_reach_the_server(server: RedisServer, migrated_url: Secret, audio_url: str) -> None:
    """This reads everything that Core sends to the server, word for word."""
    settings = core_settings(
        migrated_url,
        audio_url=audio_url,
        rate_limit_url=server.url,
        resolve_rate_limit="2",
        trusted_proxies="10.0.0.0/8",
    )
    async with server.client() as client, client.monitor() as monitor:
        async with running_core(settings) as one, running_core(settings) as other:
            forwarded = {"X-Forwarded-For": "203.0.113.77"}
            by_proxy = [api.other(peer="10.0.0.1") for api in (one, other, one)]
            statuses = [(await api.resolve(UNKNOWN, headers=forwarded)).status for api in by_proxy]
            assert statuses == [404, 404, 429], "two Cores of one master key count together"
            assert (await one.other(peer="2001:db8:7::1").resolve(UNKNOWN)).status == 404
        keys = await client.keys()
        assert len(keys) == 2
        await client.echo("the end")
        lines = []
        while (command := (await monitor.next_command())["command"]) != "ECHO the end":
            lines.append(command)
    output = "\n".join(lines)
    assert all(key.decode() in output for key in keys)
    for part in ("203.0.113", "10.0.0.1", "2001:db8", "2001", UNKNOWN, b"203.0.113.77".hex()):
        assert part not in output
    assert all(key.startswith(b"soundmark:resolve:") and len(key) == len(b"soundmark:resolve:") + 32 for key in keys)


def test_a_digest_is_shared_within_an_hour_and_no_longer() -> None:
    one, other = (AddressDigest(SystemEntropy(), b"k" * 32) for _ in range(2))
    assert one.of(ADDRESS, HOUR_S) == other.of(ADDRESS, HOUR_S) == other.of(ADDRESS, HOUR_S + 3599)
    assert one.of(ADDRESS, HOUR_S) != one.of(ADDRESS, HOUR_S + 3600)
    assert AddressDigest(SystemEntropy(), b"j" * 32).of(ADDRESS, HOUR_S) != other.of(ADDRESS, HOUR_S)


def test_without_redis_a_digest_means_nothing_to_another_process() -> None:
    one, other = AddressDigest(SystemEntropy()), AddressDigest(SystemEntropy())
    assert one.of(ADDRESS, HOUR_S) == one.of(ADDRESS, HOUR_S)
    assert one.of(ADDRESS, HOUR_S) != other.of(ADDRESS, HOUR_S)


def test_a_process_that_shares_no_limit_does_not_load_the_client() -> None:
    """Importing it would take a fifteenth of Core's start."""
    script = "import sys, soundmark.core.app; print('redis' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
