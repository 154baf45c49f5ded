"""A folder that one user keeps from run to run, although root may run things as another one next time."""

import os
import stat
from pathlib import Path

import pytest

from soundmark.operating_system.files import make_private_folder
from soundmark.operating_system.os_user import OsUser


def test_the_folder_is_private_and_keeps_what_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    make_private_folder(folder, None)
    (folder / "kept").write_text("kept")
    make_private_folder(folder, None)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "kept").read_text() == "kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder away")
def test_another_owner_gets_the_files_and_nothing_that_a_link_leads_to(tmp_path: Path) -> None:
    folder, foreign, other = tmp_path / "state", tmp_path / "foreign", tmp_path / "other"
    for path in (foreign, other):
        path.touch()
    make_private_folder(folder, OsUser("first", 12345, 12345))
    (folder / "own").touch()
    (folder / "link").symlink_to(foreign)
    (folder / "hard link").hardlink_to(other)
    for owner, uid in ((OsUser("second", 12346, 12346), 12346), (None, 0)):
        make_private_folder(folder, owner)
        assert (folder.stat().st_uid, (folder / "own").stat().st_uid) == (uid, uid)
        assert (foreign.stat().st_uid, other.stat().st_uid) == (0, 0)
