"""The places of PostgreSQL's programs, its cluster and the small files of a data dir, and their owners."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes.up_process import passable_folder

from soundmark.embedded import cluster_location, installation
from soundmark.embedded.postgres import Cluster
from soundmark.embedded.throwaway import throwaway_cluster
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.operating_system.os_user import OsUser, can_enter, can_run, unprivileged_user
from soundmark.supervision import data_dir

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has somebody else run PostgreSQL")


@pytest.fixture
def user() -> OsUser:
    """An ordinary user of this machine."""
    found = unprivileged_user()
    assert found is not None
    return found


@only_root
def test_the_unprivileged_user_has_no_other_rights(user: OsUser) -> None:
    assert user.uid != 0
    assert can_run(user, ["/bin/sh", "-c", f'test "$(id -u)" = {user.uid} && test "$(id -G)" = {user.gid}'])


@only_root
def test_access_is_tried_not_guessed(user: OsUser, tmp_path: Path) -> None:
    """A folder may look open and be below one that is not."""
    inner = tmp_path / "closed" / "open"
    inner.mkdir(parents=True)
    inner.chmod(0o777)
    inner.parent.chmod(0o700)
    assert can_enter(None, inner)
    assert not can_enter(user, inner)
    with passable_folder() as folder:
        assert can_enter(user, folder)


@only_root
def test_programs_out_of_reach_are_copied_whole_once(
    user: OsUser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual environment below /root, or on a machine whose umask is 077."""
    shipped = installation.find_programs(None).parent
    package, libraries = shipped.parent, shipped.parent.with_name(f"{shipped.parent.name}.libs")
    closed = tmp_path / "closed"
    shutil.copytree(shipped, closed / package.name / shipped.name, ignore=shutil.ignore_patterns("include"))
    shutil.copytree(libraries, closed / libraries.name)
    for path in [closed, *closed.rglob("*")]:
        path.chmod(path.stat().st_mode & 0o700)
    monkeypatch.setattr(installation, "_find_shipped", lambda: closed / package.name / shipped.name)
    with passable_folder() as folder:
        monkeypatch.setattr(installation, "SYSTEM_DIRECTORY", folder)
        # The rest of a killed copy is never mistaken for a complete one.
        (folder / ".copying-killed" / "postgresql-18").mkdir(parents=True)
        programs = installation.find_programs(user)
        assert programs.is_relative_to(folder)
        for name in ("postgres", "initdb", "psql", "pg_dump"):
            assert can_run(user, [str(programs / name), "--version"])
        made_ns = programs.stat().st_mtime_ns
        assert installation.find_programs(user) == programs
        assert programs.stat().st_mtime_ns == made_ns


@only_root
def test_no_folder_that_was_there_before_is_opened(tmp_path: Path) -> None:
    directory = tmp_path / "mine"
    directory.mkdir(mode=0o700)
    data_dir.make_data_dir(directory)
    home = cluster_location.find_home(directory)
    assert home.elsewhere
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@only_root
def test_a_cluster_is_used_as_the_user_that_owns_it() -> None:
    """The data dir of an ordinary user stays theirs, even if root ran it once."""
    with passable_folder() as folder:
        (folder / "postgresql").mkdir(mode=0o700)
        os.chown(folder / "postgresql", 12345, 23456)
        found = cluster_location.find_home(folder).user
    assert found is not None
    assert (found.uid, found.gid) == (12345, 23456)


def test_a_data_dir_is_held_by_one_process_at_a_time(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from soundmark.supervision import data_dir\n"
        "with data_dir.take_turn(Path(sys.argv[1])): pass"
    )
    with data_dir.take_turn(tmp_path):
        done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, capture_output=True)
    assert f"already running on {tmp_path} (pid {os.getpid()})".encode() in done.stderr


def test_the_next_turn_knows_whether_the_last_one_ended_cleanly(tmp_path: Path) -> None:
    with data_dir.take_turn(tmp_path) as turn:
        assert not turn.after_crash
    with contextlib.suppress(ZeroDivisionError), data_dir.take_turn(tmp_path) as turn:
        assert not turn.after_crash
        raise ZeroDivisionError
    with data_dir.take_turn(tmp_path) as turn:
        assert turn.after_crash
    with data_dir.take_turn(tmp_path) as turn:
        assert not turn.after_crash


def test_the_master_key_is_made_once(tmp_path: Path) -> None:
    def key(*, given: str | None = None, cluster_exists: bool = False) -> str:
        return data_dir.master_key(
            tmp_path, given=given, cluster_exists=cluster_exists, entropy=SystemEntropy()
        ).reveal()

    made = key()
    assert key(cluster_exists=True) == key(given=made, cluster_exists=True) == made
    assert stat.S_IMODE((tmp_path / "master.key").stat().st_mode) == 0o600
    with pytest.raises(data_dir.DataDirRefused, match="is not the key in"):
        key(given="B" * 42 + "A")
    (tmp_path / "master.key").write_text(made[:20])
    with pytest.raises(data_dir.DataDirRefused, match="must be 32 bytes"):
        key()


def test_a_given_master_key_is_never_written_down(tmp_path: Path) -> None:
    given = "C" * 42 + "A"
    key = data_dir.master_key(tmp_path, given=given, cluster_exists=True, entropy=SystemEntropy())
    assert key.reveal() == given
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_that_was_not_finished_is_made_again() -> None:
    """`kill -9` of an `up` while it creates the cluster."""
    with throwaway_cluster() as running:
        cluster = running.cluster
        running.stop()
        unfinished = cluster.home / "data.unfinished"
        cluster.data.rename(unfinished)
        (unfinished / "PG_VERSION").unlink()
        again = cluster.start()
        try:
            assert not unfinished.exists()
        finally:
            again.stop()


def test_the_number_of_a_dead_server_may_belong_to_somebody_else() -> None:
    """After a reboot `postmaster.pid` may name any process; PostgreSQL takes one of the same user for a server."""
    with throwaway_cluster() as running:
        cluster = running.cluster
        running.stop()
        options = cluster.process_options()
        with subprocess.Popen(["/bin/sleep", "60"], **options) as stranger:
            try:
                (cluster.data / "postmaster.pid").write_text(f"{stranger.pid}\n{cluster.data}\n")
                cluster.start().stop()
                assert stranger.poll() is None
            finally:
                stranger.kill()


def test_a_server_that_is_left_over_is_asked_to_end() -> None:
    with throwaway_cluster() as running:
        cluster: Cluster = running.cluster
        again = cluster.start()
        try:
            assert running.process.wait(10) == 0
            assert cluster.is_answering(again.port)
        finally:
            again.stop()
