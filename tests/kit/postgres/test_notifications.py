"""Events that are set when a transaction commits elsewhere, and what happens to them when a connection is lost."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from support.database.notes_table import break_database, terminate_connections
from support.database.rival import Rival

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres import notifications
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.notifications import Listener
from soundmark.kit.tasks import running


@dataclass(frozen=True)
class Waiting:
    """A listener, and the events that it sets."""

    notes: asyncio.Event
    others: asyncio.Event
    listener: Listener

    async def until_told(self) -> None:
        """Wait until both events are set, as when it begins or stops to listen; clear them."""
        async with asyncio.timeout(60):
            for event in (self.notes, self.others):
                await event.wait()
                event.clear()

    async def until_listening(self) -> None:
        await self.until_told()
        while not self.listener.is_listening:
            await self.until_told()


@pytest.fixture
async def waiting(db: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Waiting]:
    """A listener that tries again soon after a failure."""
    monkeypatch.setattr(notifications, "_AGAIN_S", 0.01)
    notes, others = asyncio.Event(), asyncio.Event()
    listener = Listener(db, {"notes": notes, "others": others})
    async with running("listening", listener.keep_listening()):
        yield Waiting(notes, others, listener)


async def test_a_commit_sets_the_event_of_its_channel_and_a_rollback_sets_none(
    waiting: Waiting, kit_rival: Rival
) -> None:
    await waiting.until_listening()
    assert waiting.listener.is_listening

    async with kit_rival.holding("NOTIFY others"):
        await kit_rival.run("NOTIFY notes")
    async with asyncio.timeout(60):
        await waiting.notes.wait()

    assert not waiting.others.is_set()


async def test_after_a_lost_connection_every_event_is_set_because_a_notification_may_be_lost(
    waiting: Waiting, superuser: Rival, kit_rival: Rival
) -> None:
    await waiting.until_listening()

    async with break_database(superuser):
        await waiting.until_told()
        assert not waiting.listener.is_listening, "who waits looks by itself from now on"

    await waiting.until_listening()
    await kit_rival.run("NOTIFY notes")
    async with asyncio.timeout(60):
        await waiting.notes.wait()


async def test_a_listener_that_is_cut_off_over_and_over_hears_again(
    waiting: Waiting, superuser: Rival, kit_rival: Rival
) -> None:
    for _ in range(5):
        await waiting.until_listening()
        await terminate_connections(superuser)
    await waiting.until_listening()
    await kit_rival.run("NOTIFY others")
    async with asyncio.timeout(60):
        await waiting.others.wait()


async def test_waiting_for_a_notification_does_not_wake_the_process(
    waiting: Waiting, kit_url: Secret, monkeypatch: pytest.MonkeyPatch
) -> None:
    """psycopg itself would look ten times a second, in every process, whether anything happens or not."""

    def notify() -> None:
        with psycopg.connect(kit_url.reveal(), autocommit=True) as connection:
            connection.execute("NOTIFY notes")

    loop = asyncio.get_running_loop()
    await waiting.until_listening()
    timers: list[float] = []
    call_later = loop.call_later

    def note_and_call_later(after_s: float, callback: Callable[..., object], *rest: Any) -> asyncio.TimerHandle:
        timers.append(after_s)
        return call_later(after_s, callback, *rest)

    monkeypatch.setattr(loop, "call_later", note_and_call_later)

    await asyncio.to_thread(notify)
    await waiting.notes.wait()

    # The listener waited again, once. Other connections of the pool may set timers of theirs meanwhile.
    assert timers.count(60) == 1, timers
