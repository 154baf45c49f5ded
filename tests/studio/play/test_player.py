"""One endless sound: Codes, the gaps between them, and silence."""

from typing import Final

from support.studio.playout_lines import NOON, make_line

from soundmark.studio.play.player import Player
from soundmark.studio.play.playout import Playout

BLOCK_SAMPLES: Final = 4800


def render(frame: str) -> bytes:
    """Return a sound of 7,000 samples, which name the Code."""
    return bytes([0, int(frame[-1])]) * 7000


def read_numbers(blocks: list[bytes]) -> list[tuple[int, int]]:
    """Return which Code sounds (0: none), and for how many samples."""
    samples = b"".join(blocks)[1::2]
    runs: list[tuple[int, int]] = []
    for number in samples:
        count = runs.pop()[1] if runs and runs[-1][0] == number else 0
        runs.append((number, count + 1))
    return runs


def test_codes_and_gaps_follow_one_another_sample_by_sample() -> None:
    player = Player(Playout([make_line(1), make_line(2)], None), render, gap_s=0.05)
    blocks = [player.next_block(NOON) for _ in range(6)]
    assert {len(block) for block in blocks} == {2 * BLOCK_SAMPLES}
    assert read_numbers(blocks) == [(1, 7000), (0, 2400), (2, 7000), (0, 2400), (1, 7000), (0, 2400), (2, 600)]
    assert player.finished_count == 3


def test_without_a_gap_one_sound_follows_the_other() -> None:
    player = Player(Playout([make_line(1), make_line(2)], None), render, gap_s=0)
    assert read_numbers([player.next_block(NOON) for _ in range(3)]) == [(1, 7000), (2, 7000), (1, 400)]


def test_a_code_that_is_revoked_is_cut_off_within_a_block() -> None:
    playout = Playout([make_line(1)], None)
    player = Player(playout, render, gap_s=1)
    first = player.next_block(NOON)
    playout.learn_status("xr_1", "revoked")
    assert read_numbers([first, player.next_block(NOON)]) == [(1, BLOCK_SAMPLES), (0, BLOCK_SAMPLES)]
    assert (player.current, player.finished_count) == (None, 0)


def test_the_next_code_begins_at_once_when_one_is_cut_off() -> None:
    playout = Playout([make_line(1), make_line(2)], None)
    player = Player(playout, render, gap_s=1)
    player.next_block(NOON)
    playout.learn_status("xr_1", "revoked")
    assert read_numbers([player.next_block(NOON)]) == [(2, BLOCK_SAMPLES)]
