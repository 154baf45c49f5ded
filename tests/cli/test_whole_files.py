"""Files that commands write: whole, or not at all."""

import errno
import os
import threading
from pathlib import Path

import pytest

from soundmark.cli import Refused
from soundmark.cli.whole_files import write_whole


def write(path: Path, error: BaseException | None = None) -> None:
    """Write half of a file, then fail with `error`, or write the other half."""
    with write_whole(path) as file:
        file.write(b"half")
        if error is not None:
            raise error
        file.write(b", whole")


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), Refused),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (ValueError("no sound"), ValueError),
    ],
    ids=["the disk is full", "Ctrl-C", "an error"],
)
@pytest.mark.parametrize("before", [None, b"earlier"])
def test_a_failure_leaves_what_was_there(
    tmp_path: Path, error: BaseException, seen: type[BaseException], before: bytes | None
) -> None:
    path = tmp_path / "sound.wav"
    if before is not None:
        path.write_bytes(before)

    with pytest.raises(seen) as raised:
        write(path, error)

    assert [each.read_bytes() for each in tmp_path.iterdir()] == ([] if before is None else [before])
    if seen is Refused:
        assert str(raised.value) == f"{path} cannot be written: No space left on device"


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "sound.wav")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "elsewhere" / "sound.wav").read_bytes() == b"half, whole"
    assert len(list((tmp_path / "elsewhere").iterdir())) == 1


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write, args=(pipe,), daemon=True)
    writer.start()
    assert pipe.read_bytes() == b"half, whole"
    writer.join(10)
    assert pipe.is_fifo()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be written: Is a directory"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []
