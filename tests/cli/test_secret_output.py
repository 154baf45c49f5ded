"""The output of a secret that the service shows only once."""

import os
import shutil
from pathlib import Path

import pytest

from soundmark.cli import Refused
from soundmark.cli.secret_output import SecretOutput, secret_sink


def test_a_secret_that_cannot_be_written_is_reported_as_lost(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    with secret_sink(SecretOutput(folder / "key")) as keep:
        shutil.rmtree(folder)
        with pytest.raises(Refused, match="the secret is lost, so rotate it"):
            keep("xak_secret")


@pytest.mark.parametrize("link", ["to nothing", "to a file"])
def test_a_secret_is_not_written_through_a_link(tmp_path: Path, link: str) -> None:
    target, path = tmp_path / "target", tmp_path / "key"
    path.symlink_to(target)
    if link == "to a file":
        target.write_text("somebody's")
    with pytest.raises(Refused, match="already exists"), secret_sink(SecretOutput(path)):
        pass
    with secret_sink(SecretOutput(path, force=True)) as keep:
        keep("xak_secret")
    assert (path.is_symlink(), path.read_text()) == (False, "xak_secret\n")
    assert not target.exists() or target.read_text() == "somebody's"


def test_a_named_pipe_is_not_replaced_even_by_force(tmp_path: Path) -> None:
    """Run as root, the same would replace `/dev/null` for the whole system."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(Refused, match="not a regular file"), secret_sink(SecretOutput(pipe, force=True)):
        pass
    assert pipe.is_fifo()
