import asyncio

import pytest
from soundmark_sdk import AsyncReceiver, ReceiverFailure
from soundmark_sdk.key_cache import UNKNOWN_KEY_INTERVAL_S

from .issuer import TOKEN, XR_ID, Issuer, compact
from .stand_ins import FakeClock, Service, http


@pytest.fixture
def successor() -> Issuer:
    return Issuer(b"soundmark-sdk-tests-another-seed", "key-2026-12")


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
async def test_the_server_decides_how_long_up_to_a_minute(
    service: Service, clock: FakeClock, issuer: Issuer, cache_control: str, fresh_s: float
) -> None:
    service.keys = http(200, issuer.key_set(), Cache_Control=cache_control)
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


async def test_an_unknown_key_id_is_looked_up_once_more(
    service: Service, clock: FakeClock, issuer: Issuer, successor: Issuer
) -> None:
    """A key that was rotated in a hurry works at once, without waiting for the cache to age."""
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        await receiver.resolve(TOKEN)
        service.resolve = http(200, compact(successor.answer()))
        service.keys = http(200, issuer.key_set(successor.jwk()))
        assert (await receiver.resolve(TOKEN)).key_id == successor.key_id
    assert service.paths().count("/v1/keys") == 2


async def test_unknown_key_ids_cannot_make_a_receiver_hammer_the_keys(
    service: Service, clock: FakeClock, successor: Issuer
) -> None:
    service.resolve = http(200, compact(successor.answer()))
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
        service.keys = http(200, successor.key_set())
        clock.advance(60)
        with pytest.raises(ReceiverFailure) as failure:
            await receiver.resolve(TOKEN)
    assert failure.value.reason == "unverifiable"


async def test_stale_keys_are_not_used_while_the_service_withholds_new_ones(service: Service, clock: FakeClock) -> None:
    """Otherwise whoever can suppress `/v1/keys` keeps a withdrawn key alive."""
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        await receiver.resolve(TOKEN)
        service.keys = http(503)
        clock.advance(60)
        with pytest.raises(ReceiverFailure) as failure:
            await receiver.resolve(TOKEN)
    assert failure.value.reason == "temporarily_unavailable"


async def test_callers_who_meet_the_same_unknown_key_share_one_fetch(
    service: Service, clock: FakeClock, issuer: Issuer, successor: Issuer
) -> None:
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        await receiver.resolve(TOKEN)
        service.resolve = http(200, compact(successor.answer()))
        service.keys = http(200, issuer.key_set(successor.jwk()))
        found = await asyncio.gather(*(receiver.resolve(TOKEN) for _ in range(8)))
    assert {resolution.key_id for resolution in found} == {successor.key_id}
    assert service.paths().count("/v1/keys") == 2
