"""The list of ended sessions in one process, and in the file that processes share: bounded, and it forgets nobody."""

import multiprocessing
import os
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from soundmark.console.ended_sessions import ended_file, ended_list
from soundmark.console.ended_sessions.ended_file import EndedFile
from soundmark.console.ended_sessions.ended_list import EVERY, EndedList, EndedSession
from soundmark.operating_system.files import NotTrusted

NOW_S = 1_000_000.0
RECORD_BYTES = 24


def session(number: int, *, lasts_s: float = 100.0) -> EndedSession:
    return EndedSession(number.to_bytes(16, "big"), NOW_S + lasts_s)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of ten sessions."""
    monkeypatch.setattr(ended_list, "SESSIONS_MAX", 10)
    monkeypatch.setattr(ended_list, "REPLACED_COUNT", 1)
    monkeypatch.setattr(ended_file, "_BYTES_MAX", 20 * RECORD_BYTES)


def read(folder: Path) -> EndedList:
    """Return what a new process knows."""
    known, file = EndedList(), EndedFile(folder)
    for record in file.read_new():
        known.add(record, NOW_S)
    file.close()
    return known


@pytest.mark.usefixtures("small")
def test_a_full_list_first_forgets_what_would_have_ended_anyway() -> None:
    known = EndedList()
    for number in range(1, 11):
        known.add(session(number, lasts_s=number), NOW_S)
    known.add(session(11), NOW_S + 5)

    assert len(known) == 6
    assert not known.has(session(99, lasts_s=50))


@pytest.mark.usefixtures("small")
def test_a_full_list_ends_the_oldest_sessions_of_all_and_forgets_none() -> None:
    known = EndedList()
    with structlog.testing.capture_logs() as events:
        for number in range(1, 12):
            known.add(session(number, lasts_s=number), NOW_S)

    assert all(known.has(session(number, lasts_s=number)) for number in range(1, 12))
    assert known.has(session(99, lasts_s=2)), "nobody ended it, but it is as old as those that were replaced"
    assert not known.has(session(99, lasts_s=3))
    assert [event["event"] for event in events] == ["ended_sessions_full"]
    assert len(known) == 9


@pytest.mark.usefixtures("small")
def test_what_ended_anyway_is_not_added() -> None:
    known = EndedList()
    known.add(session(1, lasts_s=0), NOW_S)
    assert (len(known), known.latest) == (0, None)


@given(st.lists(st.tuples(st.integers(1, 40), st.floats(-50, 100), st.floats(0, 20)), max_size=120))
def test_no_session_is_accepted_again_before_it_would_have_ended(steps: list[tuple[int, float, float]]) -> None:
    """Sessions end in any order while time passes; the list never holds more than its bound."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ended_list, "SESSIONS_MAX", 10)
        patch.setattr(ended_list, "REPLACED_COUNT", 1)
        known, ended, now_s = EndedList(), set(), NOW_S
        for number, lasts_s, passes_s in steps:
            now_s += passes_s
            one = EndedSession(number.to_bytes(16, "big"), now_s + lasts_s)
            known.add(one, now_s)
            ended.add(one)
            assert all(known.has(each) for each in ended if each.ends_at_s > now_s)
            assert len(known) <= 10


def test_a_process_reads_what_others_add_and_a_new_one_reads_everything(tmp_path: Path) -> None:
    here, there = EndedFile(tmp_path), EndedFile(tmp_path)
    assert there.read_new() == []
    for number in (1, 2):
        here.append(session(number), NOW_S)
        assert there.read_new() == [session(number)]
    assert there.read_new() == []
    assert EndedFile(tmp_path).read_new() == [session(1), session(2)]


@pytest.mark.usefixtures("small")
def test_a_long_file_is_replaced_by_what_is_worth_keeping(tmp_path: Path) -> None:
    here, there = EndedFile(tmp_path), EndedFile(tmp_path)
    here.append(session(1, lasts_s=1), NOW_S)
    assert len(there.read_new()) == 1
    for number in range(2, 22):
        here.append(session(number, lasts_s=number), NOW_S + 15)

    records = there.read_new()
    assert [record.digest for record in records] == [session(number).digest for number in range(16, 22)]
    assert (tmp_path / "ended-sessions").stat().st_size == 6 * RECORD_BYTES
    assert [path.name for path in tmp_path.iterdir()] == ["ended-sessions"]


@pytest.mark.usefixtures("small")
def test_a_file_full_of_current_sessions_forgets_none(tmp_path: Path) -> None:
    file = EndedFile(tmp_path)
    numbers = range(1, 60)
    for number in numbers:
        file.append(session(number, lasts_s=number), NOW_S)
        assert (tmp_path / "ended-sessions").stat().st_size <= 20 * RECORD_BYTES

    known = read(tmp_path)
    assert all(known.has(session(number, lasts_s=number)) for number in numbers)
    assert len(known) <= 10


def test_a_part_of_a_record_is_not_read_and_spoils_no_later_one(tmp_path: Path) -> None:
    """A process may die, or the disk be full, in the middle of a write."""
    file, reader = EndedFile(tmp_path), EndedFile(tmp_path)
    file.append(session(1), NOW_S)
    with (tmp_path / "ended-sessions").open("ab") as torn:
        torn.write(b"part")
    assert reader.read_new() == [session(1)]
    file.append(session(2), NOW_S)

    assert reader.read_new() == [session(2)]
    assert EndedFile(tmp_path).read_new() == [session(1), session(2)]


def test_a_disk_that_is_full_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:5]))
    with pytest.raises(OSError, match="No space left"):
        EndedFile(tmp_path).append(session(1), NOW_S)
    assert read(tmp_path).latest is None


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(NotTrusted):
        EndedFile(tmp_path).append(session(1), NOW_S)


def _append_many(folder: Path, first: int) -> None:
    ended_file._BYTES_MAX = 20 * RECORD_BYTES  # type: ignore[misc]  # final everywhere else
    file = EndedFile(folder)
    for number in range(first, first + 100):
        file.append(session(number), NOW_S)


def test_processes_that_write_together_lose_nothing(tmp_path: Path) -> None:
    """Although the file is replaced again and again."""
    reader, known = EndedFile(tmp_path), EndedList()
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_append_many, args=(tmp_path, first)) for first in (1, 101, 201)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        for record in reader.read_new():
            known.add(record, NOW_S)
    for process in processes:
        process.join()
    for record in reader.read_new():
        known.add(record, NOW_S)

    assert [process.exitcode for process in processes] == [0, 0, 0]
    for found in (known, read(tmp_path)):
        assert all(found.has(session(number)) for number in range(1, 301))
    assert not known.has(session(301))


def test_the_digest_of_every_session_stands_for_a_moment() -> None:
    known = EndedList()
    known.add(EndedSession(EVERY, NOW_S + 5), NOW_S)
    assert known.has(session(1, lasts_s=5))
    assert not known.has(session(1, lasts_s=6))
    assert list(known.records(NOW_S)) == [EndedSession(EVERY, NOW_S + 5)]
    assert list(known.records(NOW_S + 5)) == []
