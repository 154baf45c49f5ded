"""How sessions begin: at a host that answers and accepts writes, and how they end when it no longer does."""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from structlog.testing import capture_logs
from support.database.notes_table import write_note
from support.database.rival import Rival

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.requests.health import CHECK_TIMEOUT_S
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.http.server.sockets import reserve_port
from soundmark.kit.postgres import sessions
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.jobs import jobs_app
from soundmark.kit.postgres.kept_connection import KeptConnection
from soundmark.kit.postgres.link import Call
from soundmark.kit.postgres.pipelined_tx import PipelinedTx
from soundmark.kit.postgres.sessions import DIRECT, CannotConnect, HostsConnection, SessionOptions, connect_options
from soundmark.kit.postgres.shared_connection import SharedConnection

PID = "SELECT pg_backend_pid()"
READ_ONLY = "ALTER DATABASE kit_under_test SET default_transaction_read_only = on"
WRITABLE = "ALTER DATABASE kit_under_test RESET default_transaction_read_only"


class SilentHost:
    """A server whose connections nobody answers."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._held: list[socket.socket] = []

    def count(self) -> int:
        """Return how many connections were made."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._held.append(self._socket.accept()[0])
        return len(self._held)

    def close(self) -> None:
        for each in (*self._held, self._socket):
            each.close()


@pytest.fixture
def silent() -> Iterator[SilentHost]:
    """A host that accepts connections and says nothing."""
    host = SilentHost()
    yield host
    host.close()


def url_with(url: Secret, *ports: int, query: str = "") -> Secret:
    """Return the URL with these ports of this machine before its own host."""
    parts = urlsplit(url.reveal())
    hosts = ",".join([*(f"127.0.0.1:{port}" for port in ports), f"{parts.hostname}:{parts.port}"])
    return Secret(f"postgresql://{parts.username}:{parts.password}@{hosts}{parts.path}{query}")


def database_at(url: Secret, session: SessionOptions = DIRECT) -> Database:
    return Database(url, pool_size=2, application_name="kit-test", session=session)


async def test_a_silent_and_a_refusing_host_leave_the_time_of_a_lookup(kit_url: Secret, silent: SilentHost) -> None:
    """No resolution succeeded while the first of several servers had no power; and it costs a second once."""
    with reserve_port("127.0.0.1", 0) as refusing:
        url = url_with(kit_url, silent.port, refusing.getsockname()[1])
        shared = SharedConnection(database_at(url), timeout_s=3)
        assert await shared.run(Call("SELECT 1"), is_repeatable=True) == [[(1,)]]
        await shared.aclose()
        db = database_at(url)
        await db.open()
        assert await db.is_ready()
        await db.close()
    assert silent.count() == 1


async def test_a_caller_whose_time_runs_out_leaves_the_next_one_another_host(
    kit_url: Secret, silent: SilentHost
) -> None:
    shared = SharedConnection(database_at(url_with(kit_url, silent.port)), timeout_s=0.5)
    with pytest.raises(DatabaseUnavailable):
        await shared.run(Call("SELECT 1"), is_repeatable=True)
    assert await shared.run(Call("SELECT 1"), is_repeatable=True) == [[(1,)]]
    await shared.aclose()


async def test_the_time_for_a_host_that_the_url_names_wins(silent: SilentHost) -> None:
    url = f"postgresql://somebody@127.0.0.1:{silent.port}/somewhere?connect_timeout=0.1"
    with pytest.raises(psycopg.OperationalError, match=r"no answer within 0\.1 s"):
        await HostsConnection.connect(url)


async def test_a_host_that_vanishes_without_a_farewell_is_noticed(kit_url: Secret) -> None:
    """Only the kernel can: a machine without power sends no reset, and a listening connection sends nothing itself."""
    connection = await HostsConnection.connect(kit_url.reveal(), **connect_options(kit_url, "kit-test", DIRECT))
    with socket.socket(fileno=connection.pgconn.socket) as its_socket:
        found = {
            name: its_socket.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
        }
        its_socket.detach()
    await connection.close()
    assert found == {
        "TCP_KEEPIDLE": 3,
        "TCP_KEEPINTVL": 1,
        "TCP_KEEPCNT": 2,
        "TCP_USER_TIMEOUT": sessions.PEER_TIMEOUT_S * 1000,
    }


async def test_no_session_begins_on_a_server_that_accepts_no_writes(kit_url: Secret, superuser: Rival) -> None:
    """After a switchover, the old address of the primary may lead to a standby."""
    await superuser.run(READ_ONLY)
    try:
        with pytest.raises(CannotConnect) as refused:
            await database_at(kit_url).open()
        assert refused.value.reason == sessions.READ_ONLY
        asking = database_at(url_with(kit_url, query="?target_session_attrs=any"))
        await asking.open()
        assert (await asking.is_ready(), await asking.is_writable()) == (True, False)
        await asking.close()
    finally:
        await superuser.run(WRITABLE)


async def test_readiness_knows_a_read_only_server_from_one_that_is_away(db: Database, superuser: Rival) -> None:
    assert await db.is_writable() is True
    await superuser.run(READ_ONLY)
    try:
        await superuser.run(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'kit_under_test'"
        )
        assert (await db.is_ready(), await db.is_writable()) == (False, False)
    finally:
        await superuser.run(WRITABLE)
    await superuser.run("ALTER DATABASE kit_under_test ALLOW_CONNECTIONS false")
    try:
        assert (await db.is_ready(), await db.is_writable()) == (False, True)
    finally:
        await superuser.run("ALTER DATABASE kit_under_test ALLOW_CONNECTIONS true")
    async with asyncio.timeout(30):
        while not await db.is_ready():
            pass


async def test_a_silent_server_is_not_taken_for_a_read_only_one(silent: SilentHost) -> None:
    """Within the time of a check, after which it would count as failed."""
    db = database_at(Secret(f"postgresql://somebody@127.0.0.1:{silent.port}/somewhere"))
    await db._pool.open()
    async with asyncio.timeout(CHECK_TIMEOUT_S):
        assert await db.is_writable() is True
    await db.close()


async def test_the_queue_of_jobs_opens_behind_a_silent_host(kit_url: Secret, silent: SilentHost) -> None:
    app = jobs_app(url_with(kit_url, silent.port), application_name="kit-test")
    async with app.open_async():
        assert await app.connector.execute_query_one_async("SELECT 1 AS one") == {"one": 1}
    assert silent.count() == 1


# SQLSTATEs of sessions that are of no more use.
LOST = ("25006", "25P03", "25P04", "57P01", "57P02", "57P03", "57P04", "57P05", "08006", "53300", "58030")


async def write_alone(db: Database, text: str) -> None:
    async with db.transaction() as tx:
        await write_note(tx, text)


def failing_with(sqlstate: str) -> str:
    return f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{sqlstate}'; END $$"


async def test_a_transaction_whose_session_is_of_no_more_use_is_unavailable_and_closes_it(
    db: Database, subtests: pytest.Subtests
) -> None:
    pids: list[int] = []

    async def fail(sqlstate: str, *, is_ending: bool) -> None:
        async with db.transaction() as tx:
            pids.append(await tx.value(PID))
            async with tx.ending() if is_ending else contextlib.nullcontext():
                await tx.connection.execute(failing_with(sqlstate).encode())

    for sqlstate, is_ending in itertools.product(LOST, (False, True)):
        with subtests.test(sqlstate, is_ending=is_ending):
            pids.clear()
            with pytest.raises(DatabaseUnavailable):
                await fail(sqlstate, is_ending=is_ending)
            for _ in range(3):
                async with db.transaction() as tx:
                    pids.append(await tx.value(PID))
            assert pids[0] not in pids[1:]


async def test_the_log_says_why_a_server_that_answers_cannot_work(db: Database) -> None:
    """`/readyz` is 200 then, and every write 503."""
    for sqlstate, reported in (("53100", ["DiskFull"]), ("57P01", [])):
        with capture_logs() as logged, pytest.raises(DatabaseUnavailable):
            async with db.transaction() as tx:
                await tx.connection.execute(failing_with(sqlstate).encode())
        assert [line["error"] for line in logged if line["event"] == "database_failed"] == reported


async def test_a_kept_connection_is_replaced_when_its_session_is_of_no_more_use(
    db: Database, subtests: pytest.Subtests
) -> None:
    for sqlstate in LOST:
        with subtests.test(sqlstate):
            kept = KeptConnection(db, timeout_s=10)
            pids: list[int] = []

            async def fail_once(tx: PipelinedTx, pids: list[int] = pids, sqlstate: str = sqlstate) -> None:
                ((pid,),) = await tx.rows(PID)
                pids.append(pid)
                if len(pids) == 1:
                    await tx.run(failing_with(sqlstate))  # type: ignore[arg-type]  # put together

            await kept.run(fail_once)
            assert len(set(pids)) == 2
            await kept.aclose()


async def test_a_kept_connection_is_replaced_when_its_statements_are_forgotten(
    db: Database, subtests: pytest.Subtests
) -> None:
    """Such as by a pooler that resets sessions."""
    kept = KeptConnection(db, timeout_s=10)

    async def ask(tx: PipelinedTx) -> int:
        ((number,),) = await tx.rows("SELECT 7")
        return int(number)

    for forgetting in ("DISCARD ALL", "DEALLOCATE ALL"):
        with subtests.test(forgetting):
            assert await kept.run(ask) == await kept.run(ask) == 7

            async def forget(tx: PipelinedTx, forgetting: str = forgetting) -> None:
                await tx.run(forgetting)  # type: ignore[arg-type]  # one of the two above

            await kept.run(forget)
            assert await kept.run(ask) == 7
    await kept.aclose()


async def test_a_session_that_became_read_only_is_replaced(db: Database) -> None:
    """Its server was demoted without ending it, or the setting changed."""
    async with db.transaction() as tx:
        await tx.run("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    with pytest.raises(DatabaseUnavailable):
        await write_alone(db, "refused")
    await write_alone(db, "written")


async def test_a_transaction_that_idled_for_too_long_is_unavailable(db: Database, kit_rival: Rival) -> None:

    async def idle_and_write() -> None:
        async with db.transaction() as tx:
            await tx.run("SET LOCAL idle_in_transaction_session_timeout = '10ms'")
            pid = tx.connection.info.backend_pid
            async with asyncio.timeout(30):
                while await kit_rival.rows("SELECT 1 FROM pg_stat_activity WHERE pid = %s", pid):
                    pass
            await write_note(tx, "too late")

    with pytest.raises(DatabaseUnavailable):
        await idle_and_write()


async def test_a_session_waits_for_as_many_servers_as_configured(kit_url: Secret) -> None:
    """Whatever the role says: with `off`, an acknowledged revocation could be lost."""
    for chosen in ("on", "remote_apply"):
        db = database_at(kit_url, SessionOptions(synchronous_commit=chosen))  # type: ignore[arg-type]  # both are
        await db.open()
        async with db.transaction() as tx:
            assert await tx.value("SHOW synchronous_commit") == chosen
        await db.close()


REFUSALS = {
    'connection failed: connection to server at "10.0.0.1", port 5432 failed: Connection refused': "does not answer",
    'connection failed: connection to server at "10.0.0.1", port 5432 failed: '
    "server does not support SSL, but SSL was required": "cannot be reached: server does not support SSL, but SSL was "
    "required",
    'connection is bad: invalid sslmode value: "some"': 'cannot be reached: invalid sslmode value: "some"',
    "failed to resolve host 'db': [Errno -2] No address": "cannot be reached: failed to resolve host 'db'",
    'connection to server at "10.0.0.1", port 5432 failed: FATAL:  password authentication failed for user "x"': (
        'refuses the connection: password authentication failed for user "x"'
    ),
    'connection to server at "10.0.0.1", port 6432 failed: FATAL:  unsupported startup parameter: options': (
        "is behind a connection pooler that refuses our options (unsupported startup parameter: options); "
        "set SOUNDMARK_DATABASE_OPTIONS=false and run `soundmark config check`"
    ),
    "connection failed: no answer within 1 s\nconnection failed: ... failed: session is read-only": sessions.READ_ONLY,
}


@pytest.mark.parametrize(("text", "reason"), REFUSALS.items())
def test_a_refusal_is_explained_without_an_address(text: str, reason: str) -> None:
    assert sessions.describe_refusal(psycopg.OperationalError(text)) == reason
