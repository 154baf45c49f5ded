"""One-time tickets: each opens once, in whichever process, and only in the folder where it was issued."""

import contextlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.fake_clock import FakeClock
from support.processes.up_process import passable_folder

from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.operating_system.files import NotTrusted
from soundmark.operating_system.one_time_tickets import (
    LIFETIME_S,
    issue_ticket,
    make_ticket_folder,
    redeem_ticket,
    remove_ticket_folder,
)
from soundmark.operating_system.os_user import OsUser

CLOCK = SystemClock()
ENTROPY = SystemEntropy()
RIVALS = 4

# Each process says that it is ready, waits for a line, and then redeems.
REDEEMER = """
import sys
from pathlib import Path
from soundmark.kit.clock import SystemClock
from soundmark.operating_system.one_time_tickets import redeem_ticket
print("ready", flush=True)
ticket = sys.stdin.readline().strip()
print(redeem_ticket(Path(sys.argv[1]), ticket, SystemClock()), flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for tickets."""
    made = tmp_path / "tickets"
    make_ticket_folder(made, None)
    return made


def test_a_ticket_is_redeemed_once(folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    assert len(ticket) == 43
    assert redeem_ticket(folder, ticket, CLOCK)
    assert not redeem_ticket(folder, ticket, CLOCK)


def test_tickets_are_independent(folder: Path) -> None:
    one, other = issue_ticket(folder, CLOCK, ENTROPY), issue_ticket(folder, CLOCK, ENTROPY)
    assert one != other
    assert redeem_ticket(folder, other, CLOCK)
    assert redeem_ticket(folder, one, CLOCK)


@pytest.mark.parametrize(("age_s", "is_good"), [(LIFETIME_S - 1, True), (LIFETIME_S, False)])
def test_a_ticket_that_nobody_used_expires_and_is_removed(folder: Path, age_s: float, is_good: bool) -> None:
    """It stays in the terminal, where somebody may read it days later."""
    clock = FakeClock()
    clock.freeze()
    ticket = issue_ticket(folder, clock, ENTROPY)
    clock.advance(seconds=age_s)
    assert redeem_ticket(folder, ticket, clock) is is_good
    assert list(folder.iterdir()) == []


def test_a_clock_that_is_set_back_prolongs_no_ticket(folder: Path) -> None:
    clock = FakeClock()
    ticket = issue_ticket(folder, clock, ENTROPY)
    clock.advance(days=-1)
    assert not redeem_ticket(folder, ticket, clock)


def test_a_listing_shows_no_ticket_and_only_the_owner_reads_it(folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    (file,) = folder.iterdir()
    assert ticket not in file.name
    assert file.read_bytes() == b""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_several_processes_redeem_a_ticket_once_together(folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    command = [sys.executable, "-c", REDEEMER, str(folder)]
    rivals = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(RIVALS)
    ]
    try:
        for rival in rivals:
            assert rival.stdout is not None
            assert rival.stdout.readline() == "ready\n"
        for rival in rivals:
            assert rival.stdin is not None
            rival.stdin.write(f"{ticket}\n")
            rival.stdin.flush()
        answers = [rival.communicate(timeout=20)[0].strip() for rival in rivals]
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()
    assert sorted(answers) == ["False"] * (RIVALS - 1) + ["True"]


@pytest.mark.parametrize(
    "text", ["", "x", "a" * 42, "a" * 44, "../" + "a" * 40, "a" * 42 + "/", "a" * 43 + "\n", "é" * 43]
)
def test_what_is_no_ticket_opens_nothing(folder: Path, text: str) -> None:
    assert not redeem_ticket(folder, text, CLOCK)


def test_a_ticket_of_another_folder_opens_nothing(folder: Path, tmp_path: Path) -> None:
    make_ticket_folder(tmp_path / "other", None)
    assert not redeem_ticket(folder, issue_ticket(tmp_path / "other", CLOCK, ENTROPY), CLOCK)


def test_making_the_folder_again_removes_its_tickets(folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    (folder / "left").mkdir()
    make_ticket_folder(folder, None)
    assert list(folder.iterdir()) == []
    assert not redeem_ticket(folder, ticket, CLOCK)


def test_a_removed_folder_issues_and_redeems_nothing(folder: Path) -> None:
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    remove_ticket_folder(folder)
    remove_ticket_folder(folder)
    assert not folder.exists()
    with pytest.raises(FileNotFoundError):
        redeem_ticket(folder, ticket, CLOCK)
    with pytest.raises(FileNotFoundError):
        issue_ticket(folder, CLOCK, ENTROPY)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o722])
def test_a_folder_that_others_can_write_to_is_refused(folder: Path, mode: int) -> None:
    """Anybody who can put a file there could sign in."""
    ticket = issue_ticket(folder, CLOCK, ENTROPY)
    folder.chmod(mode)
    with pytest.raises(NotTrusted):
        redeem_ticket(folder, ticket, CLOCK)


@contextlib.contextmanager
def acting_as(user: OsUser) -> Iterator[None]:
    os.seteuid(user.uid)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder away")
def test_the_owner_of_the_folder_redeems_what_root_issues() -> None:
    """As under root's `up`, whose console runs as an unprivileged user."""
    somebody = OsUser("somebody", 12345, os.getegid())
    with passable_folder() as parent:
        folder = parent / "tickets"
        make_ticket_folder(folder, somebody)
        assert (folder.stat().st_uid, stat.S_IMODE(folder.stat().st_mode)) == (somebody.uid, 0o700)
        ticket = issue_ticket(folder, CLOCK, ENTROPY)
        with acting_as(somebody):
            assert redeem_ticket(folder, ticket, CLOCK)
            assert not redeem_ticket(folder, ticket, CLOCK)
