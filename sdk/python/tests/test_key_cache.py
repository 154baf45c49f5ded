import asyncio

import pytest
from soundmark_sdk import AsyncReceiver, ReceiverFailure
from soundmark_sdk.keys import KeySet
from soundmark_sdk.receiver.key_cache import UNKNOWN_KEY_INTERVAL_S, KeyCache

from .issuer import TOKEN, XR_ID, Issuer, compact
from .stand_ins import FakeClock, Service, make_response


@pytest.fixture
def successor() -> Issuer:
    """The issuer of the next signing key."""
    return Issuer(b"soundmark-sdk-tests-another-seed", "key-2026-12")


def rotate(service: Service, issuer: Issuer, successor: Issuer) -> None:
    """From now on the successor signs, and both keys are published."""
    service.resolve = make_response(200, compact(successor.answer()))
    service.keys = make_response(200, issuer.key_set(successor.jwk()))


async def test_keys_are_fetched_once_while_they_are_fresh(service: Service, clock: FakeClock) -> None:
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        for _ in range(3):
            await receiver.resolve(TOKEN)
        clock.advance(59)
        await receiver.resolve(TOKEN)
        assert service.paths().count("/v1/keys") == 1
        clock.advance(1)
        await receiver.resolve(TOKEN)
    assert service.paths().count("/v1/keys") == 2


@pytest.mark.parametrize(
    ("cache_control", "fresh_s"),
    [("public, max-age=30", 30), ("max-age=86400", 60), ("no-store", 60), ("x-max-age=5", 60), ("MAX-AGE=0", 0)],
)
async def test_the_server_sets_the_age_of_the_keys_up_to_a_minute(
    service: Service, clock: FakeClock, issuer: Issuer, cache_control: str, fresh_s: float
) -> None:
    service.keys = make_response(200, issuer.key_set(), Cache_Control=cache_control)
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        await receiver.resolve(TOKEN)
        clock.advance(max(0, fresh_s - 1))
        await receiver.resolve(TOKEN)
        assert service.paths().count("/v1/keys") == (1 if fresh_s else 2)
        clock.advance(1)
        await receiver.resolve(TOKEN)
    assert service.paths().count("/v1/keys") == (2 if fresh_s else 3)


async def test_concurrent_callers_share_one_fetch(service: Service, clock: FakeClock) -> None:
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        found = await asyncio.gather(*(receiver.resolve(TOKEN) for _ in range(8)))
    assert {resolution.xr_id for resolution in found} == {XR_ID}
    assert service.paths().count("/v1/keys") == 1


async def test_concurrent_callers_share_a_fetch_that_fails(clock: FakeClock) -> None:
    """Otherwise they would fail one after the other, and the last would wait for all timeouts."""
    cache, release = KeyCache(clock), asyncio.Event()
    fetched: list[int] = []

    async def fetch() -> tuple[KeySet, float | None]:
        fetched.append(len(fetched))
        await release.wait()
        raise ReceiverFailure("rate_limited", "Test.", retry_after_s=7)

    waiting = [asyncio.create_task(cache.get_fresh(fetch)) for _ in range(8)]
    await asyncio.sleep(0)  # The first one fetches, and the others wait for it.
    release.set()
    failures = await asyncio.gather(*waiting, return_exceptions=True)
    assert {
        (failure.reason, failure.retry_after_s) for failure in failures if isinstance(failure, ReceiverFailure)
    } == {("rate_limited", 7)}
    assert (len(failures), fetched) == (8, [0])
    # A later caller fetches again.
    with pytest.raises(ReceiverFailure):
        await cache.get_fresh(fetch)
    assert fetched == [0, 1]


async def test_fresh_keys_are_used_whatever_happened_to_another_fetch(clock: FakeClock) -> None:
    """A caller met an unknown key id and could not fetch it; callers with a known id still have their keys."""
    cache, release, keys = KeyCache(clock), asyncio.Event(), KeySet({})

    async def fetch() -> tuple[KeySet, float | None]:
        return keys, 60

    async def fail() -> tuple[KeySet, float | None]:
        await release.wait()
        raise ReceiverFailure("network", "Test.")

    assert await cache.get_fresh(fetch) is keys
    unlucky = asyncio.create_task(cache.get_newer(keys, fail))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(cache.get_fresh(fetch))
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(ReceiverFailure):
        await unlucky
    assert await waiting is keys


async def test_a_caller_that_gives_up_leaves_the_fetch_to_the_next(clock: FakeClock) -> None:
    cache, keys = KeyCache(clock), KeySet({})

    async def hang() -> tuple[KeySet, float | None]:
        await asyncio.Event().wait()
        raise AssertionError

    async def fetch() -> tuple[KeySet, float | None]:
        return keys, 60

    impatient = asyncio.create_task(cache.get_fresh(hang))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(cache.get_fresh(fetch))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await waiting is keys
    assert impatient.cancelled()


async def test_an_unknown_key_id_is_looked_up_once(
    service: Service, clock: FakeClock, issuer: Issuer, successor: Issuer
) -> None:
    """After an urgent rotation the new key works at once, before the cache expires."""
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        await receiver.resolve(TOKEN)
        rotate(service, issuer, successor)
        assert (await receiver.resolve(TOKEN)).key_id == successor.key_id
    assert service.paths().count("/v1/keys") == 2


async def test_unknown_key_ids_do_not_cause_many_fetches(service: Service, clock: FakeClock, successor: Issuer) -> None:
    service.resolve = make_response(200, compact(successor.answer()))
    async with AsyncReceiver(service.url, clock=clock) as receiver:

        async def refused_count(times: int) -> int:
            for _ in range(times):
                with pytest.raises(ReceiverFailure) as failure:
                    await receiver.resolve(TOKEN)
                assert failure.value.reason == "unverifiable"
            return service.paths().count("/v1/keys")

        assert await refused_count(5) == 2
        clock.advance(UNKNOWN_KEY_INTERVAL_S - 0.1)
        assert await refused_count(5) == 2
        clock.advance(0.1)
        assert await refused_count(5) == 3


async def test_a_withdrawn_key_stops_verifying_after_the_next_fetch(
    service: Service, clock: FakeClock, successor: Issuer
) -> None:
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        await receiver.resolve(TOKEN)
        service.keys = make_response(200, successor.key_set())
        clock.advance(60)
        with pytest.raises(ReceiverFailure) as failure:
            await receiver.resolve(TOKEN)
    assert failure.value.reason == "unverifiable"


async def test_old_keys_are_not_used_when_a_fetch_fails(service: Service, clock: FakeClock) -> None:
    """Otherwise somebody who can block `/v1/keys` could keep a withdrawn key alive."""
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        await receiver.resolve(TOKEN)
        service.keys = make_response(503)
        clock.advance(60)
        with pytest.raises(ReceiverFailure) as failure:
            await receiver.resolve(TOKEN)
    assert failure.value.reason == "temporarily_unavailable"


async def test_callers_who_meet_the_same_unknown_key_share_one_fetch(
    service: Service, clock: FakeClock, issuer: Issuer, successor: Issuer
) -> None:
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        await receiver.resolve(TOKEN)
        rotate(service, issuer, successor)
        found = await asyncio.gather(*(receiver.resolve(TOKEN) for _ in range(8)))
    assert {resolution.key_id for resolution in found} == {successor.key_id}
    assert service.paths().count("/v1/keys") == 2
