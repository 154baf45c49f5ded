"""A few sounds of each kind that must be heard; docs/sound.md says how many of a hundred are."""

from pathlib import Path

import pytest

from bench.decoding import Score, measure, table, write
from soundmark.audio.synthesis import PROTOCOLS
from soundmark.wire.private.audio import Protocol


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "condition",
    [
        "white noise, SNR 0 dB",
        "resampled to 44.1 kHz, heard at 44.1 kHz",
        "resampled to 44.1 kHz and back",
        "volume 1/100",
        "one dropout of 50 ms",
        "all at once (see below)",
    ],
)
def test_a_degraded_sound_is_heard(condition: str, protocol: Protocol) -> None:
    """The frames, the noise and the gaps are the same in every run, so this cannot fail by chance."""
    assert measure(condition, protocol, 2) == Score(condition, protocol, count=2, heard_count=2, wrong_count=0)


def test_a_sound_that_is_not_heard_is_not_counted() -> None:
    """A measurement that cannot fail measures nothing."""
    score = measure("clock error 3000 ppm", 4, 2)

    assert (score.heard_count, score.wrong_count) == (0, 0)


def test_the_table_has_one_line_for_each_condition() -> None:
    scores = [Score(condition, protocol, 4, 3, 0) for condition in ("one", "two") for protocol in PROTOCOLS]

    assert list(table(scores))[2:] == ["| one | 75 % | 75 % | 75 % |", "| two | 75 % | 75 % | 75 % |"]


def test_writing_replaces_only_the_measured_part(tmp_path: Path) -> None:
    page = tmp_path / "sound.md"
    marks = "<!-- measured: begin (written by python -m bench.decoding) -->\n{}\n<!-- measured: end -->"
    page.write_text(f"before\n{marks.format('old')}\nafter\n")

    write(page, "new")

    assert page.read_text() == f"before\n{marks.format('new')}\nafter\n"
