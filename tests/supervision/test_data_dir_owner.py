"""A data dir is accepted only from its owner: files of others in it are neither used nor damaged."""

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.processes.up_process import passable_folder, refused_up

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.operating_system.files import NotTrusted, read_trusted
from soundmark.supervision import data_dir
from soundmark.supervision.data_dir import DataDirRefused

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")

PLANTED: str = "P" * 42 + "A"
STRANGER: int = 12345


@pytest.fixture
def directory() -> Iterator[Path]:
    """A data dir of our own, as `up` creates it."""
    with passable_folder() as folder:
        path = folder / "data"
        data_dir.make_data_dir(path)
        yield path


def key_of(directory: Path) -> Secret:
    return data_dir.master_key(directory, given=None, cluster_exists=False, entropy=SystemEntropy())


def take(directory: Path) -> None:
    with data_dir.take_turn(directory):
        pass


def plant_key(directory: Path) -> Path:
    file = directory / "master.key"
    file.write_text(PLANTED + "\n")
    file.chmod(0o600)
    return file


@only_root
def test_another_users_folder_is_refused_and_its_master_key_not_used() -> None:
    """`nobody` left a folder open to everybody, with a master key in it: root's `up` used to seal with that key."""
    with passable_folder() as folder:
        directory = folder / "data"
        directory.mkdir()
        plant_key(directory)
        shutil.chown(directory, "nobody")
        directory.chmod(0o777)
        line = refused_up(directory, "--port", "0")
        assert line == (
            f"soundmark: the data dir is not safe to use: {directory} belongs to nobody and not to root, who runs this"
        )
        assert sorted(entry.name for entry in directory.iterdir()) == ["master.key"]


def test_a_lock_that_is_a_link_does_not_damage_its_target(directory: Path, tmp_path: Path) -> None:
    """Taking the lock used to truncate root's file."""
    target = tmp_path / "target"
    target.write_text("precious")
    (directory / "lock").symlink_to(target)
    line = refused_up(directory, "--port", "0")
    assert line == f"soundmark: {directory / 'lock'} is a symbolic link; put the file itself there"
    assert target.read_text() == "precious"


def test_a_lock_with_a_second_name_is_not_written_to(directory: Path) -> None:
    target = directory / "target"
    target.write_text("precious")
    os.link(target, directory / "lock")
    with pytest.raises(DataDirRefused, match="lock is not a file of its own"):
        take(directory)
    assert target.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(directory: Path, mode: int) -> None:
    directory.chmod(mode)
    with pytest.raises(DataDirRefused, match=rf"can be written to by others; .*: chmod go-w {directory}$"):
        data_dir.make_data_dir(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o700, 0o711, 0o755])
def test_a_folder_that_others_may_pass_or_read_is_taken(directory: Path, mode: int) -> None:
    directory.chmod(mode)
    data_dir.make_data_dir(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == mode


@only_root
@pytest.mark.parametrize("name", ["master.key", "lock", "up.json", "postgresql.location"])
def test_another_users_file_in_our_folder_is_refused(directory: Path, name: str) -> None:
    """It was put there while the folder was open to others."""
    (directory / name).write_text("planted")
    os.chown(directory / name, STRANGER, STRANGER)
    with pytest.raises(DataDirRefused, match=rf"{name} belongs to the user {STRANGER}; remove it"):
        data_dir.make_data_dir(directory)


@only_root
def test_another_users_link_to_our_folder_is_refused(directory: Path) -> None:
    link = directory.parent / "link"
    link.symlink_to(directory)
    data_dir.make_data_dir(link)
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    with pytest.raises(DataDirRefused, match=f"{link} belongs to the user {STRANGER} and not to root"):
        data_dir.make_data_dir(link)


@only_root
def test_the_folder_of_the_cluster_may_belong_to_the_user_that_runs_it(directory: Path) -> None:
    (directory / "postgresql").mkdir(mode=0o700)
    os.chown(directory / "postgresql", STRANGER, STRANGER)
    data_dir.make_data_dir(directory)


def _link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_link, "is a symbolic link"),
        (_pipe, "is not a file of its own"),
        (lambda file: os.link(file, file.with_name("second")), "is not a file of its own"),
        (lambda file: file.chmod(0o640), "can be read by others; .*: chmod 600"),
        (lambda file: file.chmod(0o602), "can be read by others; .*: chmod 600"),
    ],
    ids=["link", "pipe", "second name", "readable", "writable"],
)
def test_a_master_key_that_others_could_have_read_or_changed_is_not_used(
    directory: Path, spoil: Callable[[Path], None], message: str
) -> None:
    key = key_of(directory)
    assert key_of(directory).reveal() == key.reveal()
    spoil(directory / "master.key")
    with pytest.raises(DataDirRefused, match=message):
        key_of(directory)
    with pytest.raises(DataDirRefused, match=message):
        data_dir.read_master_keys(directory)


@only_root
def test_a_master_key_of_somebody_else_is_not_used(directory: Path) -> None:
    os.chown(plant_key(directory), STRANGER, STRANGER)
    with pytest.raises(DataDirRefused, match=f"master.key belongs to the user {STRANGER} and not to root"):
        key_of(directory)


@only_root
def test_what_root_reads_in_the_folder_of_an_unprivileged_user_is_that_users(directory: Path, tmp_path: Path) -> None:
    """The user that runs PostgreSQL could make root read a file of root's, and send it as a password."""
    of_root = tmp_path / "shadow"
    of_root.write_text("precious")
    of_root.chmod(0o600)
    password = directory / "superuser.password"
    password.symlink_to(of_root)
    with pytest.raises(NotTrusted, match="symbolic link"):
        read_trusted(password, owner_uid=STRANGER)
    password.unlink()
    shutil.move(of_root, password)
    with pytest.raises(NotTrusted, match=f"belongs to root and not to the user {STRANGER}"):
        read_trusted(password, owner_uid=STRANGER)
    os.chown(password, STRANGER, STRANGER)
    assert read_trusted(password, owner_uid=STRANGER) == "precious"


def test_a_path_that_is_not_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    for name in ("file", "nowhere"):
        with pytest.raises(DataDirRefused, match=rf"the data dir .*{name} is not a folder"):
            data_dir.make_data_dir(tmp_path / name)


def test_a_file_that_a_full_disk_does_not_take_is_named(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's own error has no name then, and nobody would know which disk is full."""

    def fill(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", fill)
    with pytest.raises(DataDirRefused, match=re.escape(f"{directory}/lock cannot be written: No space left")):
        take(directory)
    monkeypatch.setattr(os, "fsync", fill)
    with pytest.raises(OSError, match=f"No space left on device: '{directory}/master.key'"):
        key_of(directory)
    assert [path.name for path in directory.iterdir()] == ["lock"], "nothing half-written is left"
