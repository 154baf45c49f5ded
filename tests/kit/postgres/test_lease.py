"""A lease without its servers; `tests/core/hot/test_lease.py` has two."""

from support.processes.fake_clock import FakeClock

from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.database_server import FIRST_TIMELINE, DatabaseServer, read_server
from soundmark.kit.postgres.lease import Lease
from soundmark.kit.postgres.promotions import Promotions


def make_lease(db: Database) -> Lease:
    clock = FakeClock()
    return Lease(db, clock, Promotions(clock))


async def test_a_server_without_synchronous_standbys_needs_no_lease(db: Database) -> None:
    async with db.snapshot() as tx:
        server = await read_server(tx)
    assert (server.is_standby, server.timeline, server.has_synchronous_standby) == (False, FIRST_TIMELINE, False)
    assert await make_lease(db).covers(server)


async def test_a_standby_is_never_covered(db: Database) -> None:
    for has_synchronous_standby in (False, True):
        standby = DatabaseServer(
            is_standby=True, timeline=None, started_at="then", has_synchronous_standby=has_synchronous_standby
        )
        assert not await make_lease(db).covers(standby)
