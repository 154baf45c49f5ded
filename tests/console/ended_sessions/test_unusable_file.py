"""A file of ended sessions that cannot be used: the log says so, and the process judges by what it knows."""

import asyncio
import fcntl
from pathlib import Path

import pytest
import structlog
from support.processes.fake_clock import FakeClock

from soundmark.console.ended_sessions import ended_sessions
from soundmark.console.ended_sessions.ended_list import EndedSession
from soundmark.console.ended_sessions.ended_sessions import make_ended_sessions


async def test_a_session_that_cannot_be_recorded_has_ended_here(clock: FakeClock, tmp_path: Path) -> None:
    session = EndedSession(b"s" * 16, clock.unix_s() + 60)
    with structlog.testing.capture_logs() as events:
        ended = make_ended_sessions(tmp_path / "absent", None, clock)
        assert [event["event"] for event in events] == ["ended_sessions_not_read"], "at start"
        await ended.add(session)
    assert await ended.has(session)
    assert [event["event"] for event in events[1:]] == ["ended_session_not_recorded"]


async def test_a_file_that_cannot_be_read_is_named_once(clock: FakeClock, tmp_path: Path) -> None:
    session = EndedSession(b"s" * 16, clock.unix_s() + 60)
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "ended-sessions").symlink_to(elsewhere)
    elsewhere.touch()
    ended = make_ended_sessions(tmp_path, None, clock)
    with structlog.testing.capture_logs() as events:
        for _ in range(3):
            assert not await ended.has(session)
    assert [event["event"] for event in events] == ["ended_sessions_not_read"]

    (tmp_path / "ended-sessions").unlink()
    other = make_ended_sessions(tmp_path, None, clock)
    await other.add(session)
    assert await ended.has(session), "it is tried again each time"
    for each in (ended, other):
        await each.aclose()


async def test_a_lock_that_nobody_gives_back_delays_a_sign_out_by_its_limit(
    clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended_sessions, "_WRITE_TIMEOUT_S", 0.05)
    session = EndedSession(b"s" * 16, clock.unix_s() + 60)
    ended, other = (make_ended_sessions(tmp_path, None, clock) for _ in range(2))
    with (tmp_path / "ended-sessions").open("ab") as file, structlog.testing.capture_logs() as events:
        fcntl.flock(file, fcntl.LOCK_EX)
        await ended.add(session)
        assert await ended.has(session)
        assert not await other.has(session)
    assert [event["event"] for event in events] == ["ended_session_not_recorded"]
    while not await other.has(session):  # noqa: ASYNC110 - the write goes on in a thread once the lock is free
        await asyncio.sleep(0)
    for each in (ended, other):
        await each.aclose()
