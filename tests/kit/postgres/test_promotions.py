"""Revocations after a promotion: acknowledged once no lease on an earlier primary can hold."""

import asyncio

from support.processes.fake_clock import FakeClock

from soundmark.kit.postgres.database_server import FIRST_TIMELINE, DatabaseServer
from soundmark.kit.postgres.promotions import Promotions


def primary(timeline: str) -> DatabaseServer:
    return DatabaseServer(is_standby=False, timeline=timeline, started_at="then", has_synchronous_standby=False)


async def test_a_cluster_without_a_promotion_waits_for_nothing() -> None:
    async with asyncio.timeout(60):
        await Promotions(FakeClock(), lease_s=1e9).outlast_leases(primary(FIRST_TIMELINE))


async def test_each_later_timeline_is_waited_for_once_from_its_first_sight() -> None:
    clock = FakeClock()
    promotions = Promotions(clock, lease_s=1000)
    async with asyncio.timeout(60):
        for timeline in ("00000002", "00000003"):
            waiting = asyncio.create_task(promotions.outlast_leases(primary(timeline)))
            await asyncio.sleep(0)
            clock.advance(seconds=999)
            await asyncio.wait({waiting}, timeout=0.2)
            assert not waiting.done()
            clock.advance(seconds=1)
            await waiting
            await promotions.outlast_leases(primary(timeline))


async def test_the_time_since_a_lookup_first_saw_the_timeline_counts() -> None:
    clock = FakeClock()
    promotions = Promotions(clock, lease_s=1000)
    promotions.see(primary("00000002"))
    clock.advance(seconds=1000)
    async with asyncio.timeout(60):
        await promotions.outlast_leases(primary("00000002"))
