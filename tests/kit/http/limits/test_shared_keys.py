"""Keys that one process of several holds, whose death frees them; here, each process is a `SharedKeys` of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from structlog.testing import capture_logs
from support.outside.redis_server import RedisServer, running_redis
from support.processes.fake_clock import FakeClock

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits import shared_keys
from soundmark.kit.http.limits.shared_keys import SharedKeys
from soundmark.kit.slots import Slots, Turns


@pytest.fixture
async def redis() -> AsyncIterator[RedisServer]:
    """The server that the processes share."""
    async with running_redis() as server:
        yield server


@pytest.fixture
async def make_keys(redis: RedisServer) -> AsyncIterator[Callable[[], SharedKeys]]:
    """The keys of one more process."""
    made: list[SharedKeys] = []

    def make() -> SharedKeys:
        keys = SharedKeys(Secret(redis.url), key_prefix=b"test:", clock=FakeClock(), entropy=SystemEntropy())
        made.append(keys)
        return keys

    yield make
    for keys in made:
        await keys.aclose()


async def expiry_ms(redis: RedisServer) -> int:
    """Return when the one key expires."""
    async with redis.client() as client:
        (key,) = await client.keys()
        return int(await client.pttl(key))


async def until_free(keys: SharedKeys, key: str) -> None:
    async with asyncio.timeout(30):
        while not await keys.take(key):  # noqa: ASYNC110 - it happens at the server
            await asyncio.sleep(0.01)


async def test_a_slot_is_taken_for_all_processes_until_it_is_released(make_keys: Callable[[], SharedKeys]) -> None:
    first, second = Slots(1, make_keys()), Slots(1, make_keys())
    assert [await first.take("a"), await second.take("a"), await second.take("b")] == [True, False, True]
    # The refused process may try again, and a third does not lose the key to it.
    assert [await second.take("a"), await first.take("b"), await first.take("a")] == [False, False, False]
    first.release("a")
    async with asyncio.timeout(30):
        while not await second.take("a"):  # noqa: ASYNC110 - it happens at the server
            await asyncio.sleep(0.01)


async def test_a_process_that_dies_frees_its_key_when_it_expires(
    redis: RedisServer, make_keys: Callable[[], SharedKeys], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_keys, "KEPT_S", 0.3)
    dead, living = make_keys(), make_keys()
    assert await dead.take("a")
    await dead.aclose()  # It renews no more, and has released nothing.
    assert not await living.take("a")
    assert 0 < await expiry_ms(redis) <= 300
    await until_free(living, "a")


async def test_a_holder_renews_its_key(
    redis: RedisServer, make_keys: Callable[[], SharedKeys], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_keys, "_RENEW_EVERY_S", 0.01)
    holder, other = make_keys(), make_keys()
    assert await holder.take("a")
    async with redis.client() as client:
        (key,) = await client.keys()
        await client.pexpire(key, 1_000)
        async with asyncio.timeout(30):
            while await client.pttl(key) <= 1_000:  # noqa: ASYNC110 - it happens at the server
                await asyncio.sleep(0.005)
    assert not await other.take("a")


async def test_without_the_server_each_process_holds_keys_alone_and_claims_them_when_it_is_back(
    redis: RedisServer, make_keys: Callable[[], SharedKeys], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_keys, "_RENEW_EVERY_S", 0.01)
    monkeypatch.setattr("soundmark.kit.http.limits.shared_server._ALONE_S", 0.01)
    holder, other = make_keys(), make_keys()
    redis.stop()
    with capture_logs() as logs:
        assert await holder.take("a")
        assert await other.take("b")
    assert {line["event"] for line in logs} == {"shared_keys_unavailable"}
    other.release("b")
    await redis.start()
    async with redis.client() as client, asyncio.timeout(30):
        while len(await client.keys()) != 1:  # noqa: ASYNC110 - it happens at the server
            await asyncio.sleep(0.01)
    assert not await other.take("a")


async def test_turns_of_a_key_are_taken_by_one_process_at_a_time(make_keys: Callable[[], SharedKeys]) -> None:
    first, second = Turns(make_keys()), Turns(make_keys())
    running = most = 0

    async def work(turns: Turns) -> None:
        nonlocal running, most
        async with turns.take("a"):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1

    async with asyncio.timeout(60):
        await asyncio.gather(*(work(turns) for turns in (first, second, first, second)))
    assert most == 1
