"""`soundmark up` by root: PostgreSQL and all serving processes run as an unprivileged user."""

import os
import shutil
import signal
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from support.console.links import LINK, ask_link, printed_link, redeem_as_owner, tickets_of
from support.processes.ordinary_user import OrdinaryUser, add_receiver_files
from support.processes.up_process import (
    END_S,
    PROCESSES,
    READY_S,
    Up,
    each_still_there,
    has_ended,
    passable_folder,
    read_notes,
    refused_up,
    running_up,
    until,
    write_note,
)

import soundmark
from soundmark.operating_system.os_user import OsUser, unprivileged_user

RESERVED_BELOW = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())

pytestmark = [
    pytest.mark.xdist_group("up"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root has somebody else run anything"),
]


@pytest.fixture(scope="module")
def first(ordinary: OrdinaryUser) -> Iterator[Up]:
    """The first run on a data dir that the tests of this module share, one by one; the first of them stops it."""
    with (
        passable_folder() as folder,
        running_up(folder / "data", command=ordinary.command, environ=ordinary.environ) as up,
    ):
        write_note(up.until_ready(), "by an unprivileged user")
        yield up


@pytest.fixture(scope="module")
def data_dir(first: Up) -> Path:
    """The data dir after the first run."""
    if first.process.poll() is None:
        first.stop()
    return first.data_dir


@pytest.fixture(scope="module")
def user() -> OsUser:
    """An ordinary user of this machine."""
    found = unprivileged_user()
    assert found is not None
    return found


def identity(process: psutil.Process) -> Mapping[str, list[str]]:
    """Return the kernel's view of a process: real, effective, saved and file system ids, groups and capabilities."""
    try:
        lines = Path("/proc", str(process.pid), "status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        raise psutil.NoSuchProcess(process.pid) from None
    fields = {name: text.split() for name, _, text in (line.partition(":") for line in lines)}
    return {name: fields[name] for name in ("Uid", "Gid", "Groups", "CapEff", "CapPrm")}


def identities(up: Up) -> list[Mapping[str, list[str]]]:
    """Return the identities of all processes of `up`, their children included."""
    return each_still_there(up.everything()[1:], identity)


def unprivileged(user: OsUser) -> Mapping[str, list[str]]:
    nothing = ["0" * 16]
    return {
        "Uid": [str(user.uid)] * 4,
        "Gid": [str(user.gid)] * 4,
        "Groups": [],
        "CapEff": nothing,
        "CapPrm": nothing,
    }


def test_everything_but_the_supervisor_gives_up_root(first: Up, ordinary: OrdinaryUser, user: OsUser) -> None:
    """Also restarted processes; the tickets are the console's; and a signal reaches processes of another user."""
    seen = identities(first)
    assert len(seen) > len(PROCESSES), "those of PostgreSQL's children too"
    assert all(one == unprivileged(user) for one in seen)
    assert psutil.Process(first.process.pid).uids().effective == 0
    assert f"  Runs as         the user {user.name}\n" in first.printed

    state = first.up_file.stat()
    assert (state.st_uid, stat.S_IMODE(state.st_mode)) == (0, 0o600)
    environ = first.children()["serve core"].environ()
    assert (environ["USER"], environ["LOGNAME"]) == (user.name, user.name)
    assert environ["HOME"] != os.environ.get("HOME")

    printed, tickets = printed_link(first)[2], tickets_of(first)
    assert tickets.stat().st_uid == user.uid
    asked = LINK.fullmatch(ask_link(first.data_dir, ordinary.command, ordinary.environ).stdout.strip())
    assert asked is not None
    assert [redeem_as_owner(tickets, ticket) for ticket in (printed, asked[2], printed)] == [True, True, False]

    for name in ("serve core", "work core"):
        killed = first.children()[name]
        killed.kill()
        until(lambda name=name, killed=killed: first.children().get(name, killed).pid != killed.pid, READY_S)
        assert identity(first.children()[name]) == unprivileged(user)
    until(lambda: first.answers("base"), READY_S)

    everything = first.everything()
    assert first.stop(signal.SIGTERM) == 0
    assert all(has_ended(process) for process in everything)
    assert "process_killed" not in first.printed


def test_all_end_with_their_supervisor_although_they_are_another_users(
    data_dir: Path, ordinary: OrdinaryUser, user: OsUser
) -> None:
    with running_up(data_dir, command=ordinary.command, environ=ordinary.environ) as up:
        # What starts first; waiting for the rest would prove no more.
        until(lambda: {"serve audio", "serve console", "postgres"} <= set(up.children()), READY_S)
        everything = up.everything()
        assert all(one == unprivileged(user) for one in identities(up))
        up.process.kill()
        up.process.wait()
        until(lambda: all(has_ended(process) for process in everything), END_S)


@pytest.fixture
def unreadable(ordinary: OrdinaryUser, tmp_path: Path) -> Mapping[str, str]:
    """The environment of an installation in a folder of root's, as a virtual environment below /root."""
    closed = tmp_path / "closed"
    shutil.copytree(Path(soundmark.__file__).parent, closed / "soundmark")
    add_receiver_files(closed / "soundmark")
    closed.chmod(0o700)
    path = os.pathsep.join(filter(None, (str(closed), ordinary.environ.get("PYTHONPATH"))))
    return {**ordinary.environ, "PYTHONPATH": path}


def test_an_installation_that_the_user_cannot_read_is_refused(
    data_dir: Path, ordinary: OrdinaryUser, user: OsUser, unreadable: Mapping[str, str]
) -> None:
    """The user may find another Soundmark, and must not run that one instead."""
    line = refused_up(data_dir, "--port", "0", command=ordinary.command, environ=unreadable)
    assert line.startswith(f"soundmark: the user {user.name} cannot read the installation in ")
    assert line.endswith(
        ", and Soundmark does not serve as root by default: run `up` as an ordinary user, install Soundmark where "
        "every user can read it, such as in /opt, or pass --serve-as-root"
    )


def test_who_insists_serves_as_root_and_the_installation_is_not_opened(
    data_dir: Path, ordinary: OrdinaryUser, user: OsUser, unreadable: Mapping[str, str], tmp_path: Path
) -> None:
    arguments = ("--port", "0", "--serve-as-root")
    with running_up(data_dir, command=ordinary.command, arguments=arguments, environ=unreadable) as up:
        assert read_notes(up.until_ready()) == ["by an unprivileged user"]
        (line,) = [line for line in up.printed.splitlines() if "cannot read the installation" in line]
        assert line.startswith(f"  Runs as         root (PostgreSQL: {user.name}), because the user {user.name} cannot")
        owners = {name: process.uids().effective for name, process in up.children().items()}
        assert owners == {**dict.fromkeys(PROCESSES, 0), "postgres": user.uid}
        assert up.stop() == 0
    assert stat.S_IMODE((tmp_path / "closed").stat().st_mode) == 0o700


def test_the_option_changes_nothing_where_the_user_can_read(
    data_dir: Path, ordinary: OrdinaryUser, user: OsUser
) -> None:
    arguments = ("--port", "0", "--serve-as-root")
    with running_up(data_dir, command=ordinary.command, arguments=arguments, environ=ordinary.environ) as up:
        until(lambda: {"serve audio", "serve console", "postgres"} <= set(up.children()), READY_S)
        assert all(one == unprivileged(user) for one in identities(up))


@pytest.mark.skipif(RESERVED_BELOW <= 1, reason="this machine reserves no port for root")
def test_a_port_for_root_is_refused_where_nothing_serves_as_root(
    data_dir: Path, ordinary: OrdinaryUser, user: OsUser
) -> None:
    line = refused_up(data_dir, "--port", "1", command=ordinary.command, environ=ordinary.environ)
    assert line == (
        f"soundmark: cannot listen on 127.0.0.1:1: ports below {RESERVED_BELOW} are reserved for root, "
        f"and the serving process runs as the user {user.name}; choose another port with --port (make up PORT=8181)"
    )
