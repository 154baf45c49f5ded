"""The keyring of a running process: kept current during every kind of failure."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict
from support.api.core_settings import MASTER_KEY, core_settings, jobs_settings
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core

from soundmark.core.context import Context
from soundmark.core.features.codes.signing_keys import service
from soundmark.core.live import keyring as keyring_module
from soundmark.core.live.keyring import LiveKeyring
from soundmark.core.operator import open_context
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import SealBroken, Sealer, parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.tasks import cancel_and_wait

SEALER = Sealer(parse_master_key(MASTER_KEY), SystemEntropy())
_READ = "LOCK TABLE signing_keys IN ACCESS EXCLUSIVE MODE"


class Watched(LiveKeyring):
    """The production keyring, which reports how each reading ended, and fails on command."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, SEALER, FakeClock())
        self.failure: Exception | None = None
        self.outcomes: asyncio.Queue[str] = asyncio.Queue()

    async def refresh(self) -> None:
        try:
            await self._refresh()
        except Exception as error:
            self.outcomes.put_nowait(type(error).__name__)
            raise
        self.outcomes.put_nowait("read")

    async def _refresh(self) -> None:
        if self.failure is not None:
            raise self.failure
        await super().refresh()

    async def until(self, *outcomes: str) -> None:
        """Wait for readings to end like this from now on, one after the other; the first may have begun before."""
        while not self.outcomes.empty():
            self.outcomes.get_nowait()
        async with asyncio.timeout(60):
            for outcome in outcomes:
                while await self.outcomes.get() != outcome:
                    pass


@pytest.fixture
async def ctx(spare_database_url: Secret) -> AsyncIterator[Context]:
    """The commands' context on a database with one active key."""
    async with open_context(jobs_settings(spare_database_url), "tests") as opened:
        await service.ensure_active(opened)
        yield opened


@pytest.fixture
def db(ctx: Context) -> Database:
    """Core's database."""
    return ctx.db


@pytest.fixture
def live_keyring(db: Database, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """A keyring that reads its keys as often as it can, whether notifications arrive or not."""
    monkeypatch.setattr(keyring_module, "REFRESH_S", 0.001)
    monkeypatch.setattr(keyring_module, "_REFRESH_NOTIFIED_S", 0.001)
    return Watched(db)


@pytest.fixture
def rival(spare_database_url: Secret) -> Rival:
    """A second connection, which alters rows and holds locks."""
    return Rival(spare_database_url)


@contextlib.asynccontextmanager
async def keeping(live_keyring: Watched) -> AsyncIterator[None]:
    await live_keyring.refresh()
    task = asyncio.create_task(live_keyring.keep_current())
    try:
        yield
        assert not task.done()
    finally:
        await cancel_and_wait(task)


async def rotate(ctx: Context) -> str:
    """Put a new key in place and return its id."""
    staged = await service.stage(ctx)
    await service.activate(ctx, staged.key_id)
    return staged.key_id


def errors(logged: list[EventDict]) -> list[tuple[str, str]]:
    return [(line["event"], line["error"]) for line in logged if line["log_level"] == "error"]


async def test_a_key_activated_by_another_process_is_adopted(live_keyring: Watched, ctx: Context) -> None:
    async with keeping(live_keyring):
        new = await rotate(ctx)
        await live_keyring.until("read", "read")
        assert live_keyring.keyring.active.key_id == new


async def test_a_change_is_noticed_by_its_notification_alone(
    live_keyring: Watched, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a process would sign with the replaced key for as long as it waits between two looks."""
    monkeypatch.setattr(keyring_module, "REFRESH_S", 3600)
    monkeypatch.setattr(keyring_module, "_REFRESH_NOTIFIED_S", 3600)
    async with keeping(live_keyring):
        await live_keyring.until("read")  # Because it listens from now on.
        new = await rotate(ctx)
        async with asyncio.timeout(60):
            while live_keyring.keyring.active.key_id != new:
                await live_keyring.outcomes.get()


@pytest.mark.parametrize(
    "failure",
    [SealBroken("sealed under another master key"), RuntimeError("a mistake of ours"), AssertionError("another")],
    ids=lambda failure: type(failure).__name__,
)
async def test_no_failure_ends_the_refreshing(live_keyring: Watched, ctx: Context, failure: Exception) -> None:
    """A process that gave up would sign with a replaced key until it is retired, and then fail every receiver."""
    with capture_logs() as logged:
        async with keeping(live_keyring):
            before = live_keyring.keyring
            live_keyring.failure = failure
            new = await rotate(ctx)
            await live_keyring.until(*[type(failure).__name__] * 3)
            assert live_keyring.keyring is before
            assert errors(logged) == [("signing_keys_not_refreshed", type(failure).__name__)]
            assert not await live_keyring.is_current()
            live_keyring.failure = None
            await live_keyring.until("read", "read")
            assert live_keyring.keyring.active.key_id == new
            assert await live_keyring.is_current()


async def test_a_failure_that_returns_is_logged_again(live_keyring: Watched) -> None:
    with capture_logs() as logged:
        async with keeping(live_keyring):
            for _ in range(2):
                live_keyring.failure = RuntimeError("a mistake of ours")
                await live_keyring.until("RuntimeError", "RuntimeError")
                live_keyring.failure = None
                await live_keyring.until("read")
    assert errors(logged) == [("signing_keys_not_refreshed", "RuntimeError")] * 2


async def test_an_unavailable_database_is_not_an_internal_error(live_keyring: Watched) -> None:
    with capture_logs() as logged:
        async with keeping(live_keyring):
            before = live_keyring.keyring
            live_keyring.failure = DatabaseUnavailable()
            await live_keyring.until("DatabaseUnavailable", "DatabaseUnavailable")
            assert await live_keyring.is_current()
            assert live_keyring.keyring is before
    assert errors(logged) == []


async def test_a_new_key_that_does_not_open_leaves_the_old_one_signing(
    live_keyring: Watched, ctx: Context, rival: Rival
) -> None:
    """The new key's row was altered, or another master key sealed it."""
    with capture_logs() as logged:
        async with keeping(live_keyring):
            before = live_keyring.keyring.active.key_id
            staged = await service.stage(ctx)
            await rival.run("UPDATE signing_keys SET sealed_seed = '\\x01' WHERE status = 'next'")
            await service.activate(ctx, staged.key_id)
            await live_keyring.until("SealBroken")
            assert live_keyring.keyring.active.key_id == before
    assert errors(logged) == [("signing_keys_not_refreshed", "SealBroken")]


class CountingDatabase(Database):
    begun_count = 0

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        self.begun_count += 1
        async with super().transaction() as tx:
            yield tx


@pytest.mark.usefixtures("db")
async def test_an_older_reading_never_replaces_a_newer_one(spare_database_url: Secret, rival: Rival) -> None:
    """It would hide a key that was just fetched: a genuine Code would be taken for a forgery."""
    counting = CountingDatabase(spare_database_url, pool_size=2, application_name="tests")
    await counting.open()
    live_keyring = LiveKeyring(counting, SEALER, FakeClock())
    await live_keyring.refresh()
    async with rival.holding(_READ):
        first = await rival.while_waiting(live_keyring.refresh())
        second = asyncio.create_task(live_keyring.keyring_with("sig_unknown"))
        await asyncio.sleep(0)
        # The second begins after the first has ended.
        assert (counting.begun_count, second.done()) == (2, False)
    await asyncio.gather(first, second)
    assert counting.begun_count == 3
    await counting.close()


async def test_an_unknown_key_is_looked_up_at_once_but_not_each_time(ctx: Context, rival: Rival) -> None:
    clock = FakeClock()
    live_keyring = LiveKeyring(ctx.db, SEALER, clock)
    await live_keyring.refresh()
    new = await rotate(ctx)
    assert new not in live_keyring.keyring.keys
    assert new in (await live_keyring.keyring_with(new)).keys
    async with rival.holding(_READ):
        # This is answered without the database, which could not answer now.
        assert "sig_forged" not in (await live_keyring.keyring_with("sig_forged")).keys
    later = await rotate(ctx)
    clock.advance(seconds=0.2)
    assert (await live_keyring.keyring_with(later)).active.key_id == later


async def test_refreshing_has_ended_when_the_app_has_stopped(
    spare_database_url: Secret, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When stopped in the middle of a reading, it leaves neither a task nor a connection behind."""
    monkeypatch.setattr(keyring_module, "REFRESH_S", 0.001)
    before = asyncio.all_tasks()  # The Core that all tests share may be among them.
    async with contextlib.AsyncExitStack() as held:
        async with running_core(core_settings(spare_database_url)):
            await held.enter_async_context(rival.holding(_READ))
            await rival.until_someone_waits()
        assert "live_keyring" not in {task.get_name() for task in asyncio.all_tasks() - before}
    left = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'soundmark-core' AND datname = current_database()"
    await rival.until_rows(left)
