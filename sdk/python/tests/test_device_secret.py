"""The file of the device secret: created once, for its owner only, and never another kind of file."""

import os
import stat
import threading
from pathlib import Path

import pytest
from soundmark_sdk import DeviceSecret, DeviceSecretUnusable, open_device_secret


def test_a_secret_is_created_once_and_found_again(tmp_path: Path) -> None:
    made = open_device_secret(tmp_path / "secret")
    assert open_device_secret(str(tmp_path / "secret")).reveal() == made.reveal()
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_only_its_owner_can_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        open_device_secret(tmp_path / "secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_concurrent_first_openers_get_the_same_secret(tmp_path: Path) -> None:
    begin, secrets = threading.Barrier(16), []

    def open_it() -> None:
        begin.wait()
        secrets.append(open_device_secret(tmp_path / "secret").reveal())

    threads = [threading.Thread(target=open_it) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(secrets) == 16
    assert len(set(secrets)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_a_deleted_secret_is_replaced_by_another(tmp_path: Path) -> None:
    first = open_device_secret(tmp_path / "secret")
    (tmp_path / "secret").unlink()
    assert open_device_secret(tmp_path / "secret").reveal() != first.reveal()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620])
def test_a_file_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    open_device_secret(tmp_path / "secret")
    (tmp_path / "secret").chmod(mode)
    with pytest.raises(DeviceSecretUnusable, match="0600"):
        open_device_secret(tmp_path / "secret")


@pytest.mark.parametrize("held", [b"", b"short", b"s" * 33])
def test_a_file_of_another_size_is_refused_and_left_alone(tmp_path: Path, held: bytes) -> None:
    path = tmp_path / "secret"
    path.write_bytes(held)
    path.chmod(0o600)
    with pytest.raises(DeviceSecretUnusable, match="32 bytes"):
        open_device_secret(path)
    assert path.read_bytes() == held


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(DeviceSecret.new().reveal())
    (tmp_path / "secret").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DeviceSecretUnusable, match="symbolic link"):
        open_device_secret(tmp_path / "secret")


def test_a_folder_or_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("folder", "pipe"):
        with pytest.raises(DeviceSecretUnusable, match="regular file"):
            open_device_secret(tmp_path / name)


def test_a_missing_folder_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_device_secret(tmp_path / "nowhere" / "secret")
