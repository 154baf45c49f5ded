"""What an agent keeps on the disk, and from whom."""

import stat
from datetime import timedelta
from pathlib import Path

import pytest
from support.studio.playout_lines import NOON, TEN_MINUTES, at, fill, make_line, make_source, what_sounds

from soundmark.studio.play.playout import Line, Playout
from soundmark.studio.play.rotation import Rotation
from soundmark.studio.play.state_file import HeldLine, SavedState, StateFile, StateRefused


def save(path: Path) -> list[str]:
    """Save a playout with rotated Codes, as an agent does, and return their ids."""
    playout = Playout([make_line()], TEN_MINUTES)
    ids = fill(playout, NOON)
    (line,) = playout.lines
    held = HeldLine(line.source, tuple(line.held.values()), None)
    StateFile(path).save(SavedState("agent", NOON, rotate_s=600.0, lines={"xr_1": held}))
    return ids


def restore(path: Path, playout: Playout) -> Playout:
    saved = StateFile(path).read()
    assert saved is not None
    saved.restore(playout, NOON)
    return playout


def test_what_was_held_sounds_again(tmp_path: Path) -> None:
    ids = save(tmp_path / "state")
    playout = restore(tmp_path / "state", Playout([Line("xr_1")], TEN_MINUTES))
    assert playout.lines[0].source == make_source()
    assert [what_sounds(playout, at(minutes=10 * slot)) for slot in range(4)] == ids
    assert list(playout.list_wanted(NOON)) == []
    # What sounded in the earlier run is not revoked at the end of this one.
    playout = restore(tmp_path / "state", Playout([Line("xr_1")], TEN_MINUTES))
    playout.discard_unplayed()
    assert sorted(playout.discarded) == ids[1:]


@pytest.mark.parametrize(
    "playout",
    [
        Playout([Line("xr_2")], TEN_MINUTES),
        Playout([Line("xr_1")], None),
        Playout([Line("xr_1")], Rotation(timedelta(minutes=5), timedelta(minutes=30))),
    ],
    ids=["another Code", "no rotation", "another rotation"],
)
def test_what_has_no_use_any_more_is_given_up(tmp_path: Path, playout: Playout) -> None:
    ids = save(tmp_path / "state")
    assert sorted(restore(tmp_path / "state", playout).discarded) == ids


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    """Codes are in it before they sound."""
    save(tmp_path / "state")
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o600


def test_there_may_be_none(tmp_path: Path) -> None:
    assert StateFile(tmp_path / "state").read() is None


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"version": 2, "state": {"agent_id": "a"}}', "\x00"])
def test_a_file_of_another_program_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(StateRefused, match="was not written by `soundmark play`; remove it"):
        StateFile(path).read()


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "state")
    (tmp_path / "state").chmod(0o644)
    with pytest.raises(StateRefused, match="chmod 600"):
        StateFile(tmp_path / "state").read()


def test_only_one_agent_at_a_time_uses_it(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state")
    with file.locked(), pytest.raises(StateRefused, match=r"another `soundmark play` uses .*; give this one --state"):
        file.locked().__enter__()
    with file.locked():
        pass


def test_a_missing_folder_is_refused_and_not_made(tmp_path: Path) -> None:
    """Whoever names a file may have mistyped its folder."""
    with pytest.raises(StateRefused, match=r"cannot be written: No such file or directory"):
        StateFile(tmp_path / "folder" / "state").locked().__enter__()
    assert not (tmp_path / "folder").exists()
